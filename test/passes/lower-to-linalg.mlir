// RUN: metadef-opt %s --pass-pipeline='builtin.module(lower-to-linalg)' | filecheck %s

// CHECK-DAG: #[[VIEW:.*]] = affine_map<(d0, d1) -> (d1, d0 * 2 + 1)>
// CHECK-DAG: #[[WINDOW:.*]] = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d4, d2 + d5, d3 + d6)>

// CHECK-LABEL: @one_generic_for_a_chain
// CHECK-SAME: %arg0: tensor<?x8xf32> {bufferization.writable = false, metadef.dims = ["B", 8]}
// CHECK-SAME: %arg2: tensor<?x8xf32> {bufferization.writable = true, metadef.dims = ["B", 8]}
// CHECK-SAME: %arg3: index {metadef.symbol = "B"}
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %arg1 : {{.*}}) outs(%arg2
// CHECK: arith.addf
// CHECK-NEXT: math.exp
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: linalg.yield
// CHECK-NOT: linalg.generic
func.func @one_generic_for_a_chain(%arg0: tensor<?x8xf32, #metadef.dims<["B", 8]>>, %arg1: tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0, %arg1) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %1 = "metadef.pointwise"(%0) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %2 = "metadef.pointwise"(%1, %arg0) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return %2 : tensor<?x8xf32, #metadef.dims<["B", 8]>>
}

// CHECK-LABEL: @outputs_of_one_space_share_a_generic
// CHECK: %[[R:.*]]:2 = linalg.generic
// CHECK-SAME: outs(%arg1, %arg2
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @outputs_of_one_space_share_a_generic(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0) {fn = "neg", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.pointwise"(%arg0) {fn = "abs", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: @epilogue_reads_the_product_by_identity
// CHECK: %[[T:.*]] = tensor.empty(%arg4)
// CHECK-NEXT: %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%[[T]]
// CHECK-NEXT: %[[P:.*]] = linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK-SAME: ins(%arg0, %arg1 : {{.*}}) outs(%[[F]]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[P]], %arg2 : {{.*}}) outs(%arg3
// CHECK: arith.addf
// CHECK-NEXT: arith.maximumf
func.func @epilogue_reads_the_product_by_identity(%arg0: tensor<?x16xf32, #metadef.dims<["B", 16]>>, %arg1: tensor<8x16xf32>, %arg2: tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>> attributes {metadef.kernel} {
  %0 = "metadef.contraction"(%arg0, %arg1) {transpose_lhs = false, transpose_rhs = true} : (tensor<?x16xf32, #metadef.dims<["B", 16]>>, tensor<8x16xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %1 = "metadef.pointwise"(%0, %arg2) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %2 = "metadef.pointwise"(%1) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return %2 : tensor<?x8xf32, #metadef.dims<["B", 8]>>
}

// CHECK-LABEL: @result_goes_transposed_into_the_output
// CHECK-NOT: tensor.empty
// CHECK: %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%arg2
// CHECK: %[[P:.*]] = linalg.generic
// CHECK-SAME: outs(%[[F]] : tensor<2x8x4xf32>)
// CHECK: return %[[P]]
func.func @result_goes_transposed_into_the_output(%arg0: tensor<2x4x16xf32>, %arg1: tensor<16x8xf32>) -> tensor<2x8x4xf32> attributes {metadef.kernel} {
  %0 = "metadef.contraction"(%arg0, %arg1) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
  %1 = "metadef.transpose"(%0) {perm = array<i64: 0, 2, 1>} : (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
  return %1 : tensor<2x8x4xf32>
}

// CHECK-LABEL: @prologue_joins_the_reduction
// CHECK: %[[F:.*]] = linalg.fill ins(%{{.*}} : f32) outs(%arg1
// CHECK-NEXT: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "reduction"]
// CHECK-SAME: ins(%arg0 : tensor<?x8xf32>) outs(%[[F]]
// CHECK: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NOT: linalg.generic
func.func @prologue_joins_the_reduction(%arg0: tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?xf32, #metadef.dims<["B"]>> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0, %arg0) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %1 = "metadef.reduce"(%0) {dims = array<i64: 1>, fn = "sum", keepdim = false} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?xf32, #metadef.dims<["B"]>>
  return %1 : tensor<?xf32, #metadef.dims<["B"]>>
}

// CHECK-LABEL: @stores_what_two_generics_would_compute_twice
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: return
func.func @stores_what_two_generics_would_compute_twice(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.reduce"(%0) {dims = array<i64: 1>, fn = "sum", keepdim = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = "metadef.pointwise"(%0, %1) {fn = "div", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// CHECK-LABEL: @computes_a_cheap_value_twice
// CHECK-NOT: tensor.empty
// CHECK: arith.negf
// CHECK-NEXT: arith.maximumf
// CHECK: arith.negf
// CHECK-NEXT: arith.addf
func.func @computes_a_cheap_value_twice(%arg0: tensor<4x8xf32>) -> (tensor<4xf32>, tensor<8xf32>) attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0) {fn = "neg", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.reduce"(%0) {dims = array<i64: 1>, fn = "max", keepdim = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  %2 = "metadef.reduce"(%0) {dims = array<i64: 0>, fn = "sum", keepdim = false} : (tensor<4x8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<4xf32>, tensor<8xf32>
}

// CHECK-LABEL: @softmax_rows
// CHECK: arith.cmpf ogt
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK: arith.addf
// CHECK: arith.divf
// CHECK-NEXT: arith.mulf
func.func @softmax_rows(%arg0: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {metadef.kernel} {
  %0 = "metadef.softmax"(%arg0) {dim = 1 : i64, log = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: @views_are_maps
// CHECK-NOT: extract_slice
// CHECK: linalg.generic {indexing_maps = [#[[VIEW]], #{{.*}}]
// CHECK-SAME: ins(%arg0 : tensor<4x8xf32>) outs(%arg1 : tensor<3x4xf32>)
func.func @views_are_maps(%arg0: tensor<4x8xf32>) -> tensor<3x4xf32> attributes {metadef.kernel} {
  %0 = "metadef.transpose"(%arg0) {perm = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = "metadef.slice"(%0) {dim = 0 : i64, start = "1", step = 2 : i64} : (tensor<8x4xf32>) -> tensor<3x4xf32>
  %2 = "metadef.pointwise"(%1) {fn = "neg", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// CHECK-LABEL: @slice_from_a_symbol_is_a_view
// CHECK: %[[AT:.*]] = arith.addi %arg2, %c-1
// CHECK: %[[V:.*]] = tensor.extract_slice %arg0[%[[AT]], 0] [1, 8] [1, 1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[V]]
func.func @slice_from_a_symbol_is_a_view(%arg0: tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<1x8xf32> attributes {metadef.kernel} {
  %0 = "metadef.slice"(%arg0) {dim = 0 : i64, start = "B - 1", step = 1 : i64} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<1x8xf32>
  %1 = "metadef.pointwise"(%0) {fn = "neg", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %1 : tensor<1x8xf32>
}

// CHECK-LABEL: @concat_writes_parts
// CHECK: %[[A:.*]] = tensor.extract_slice %arg2[0, 0] [4, 8]
// CHECK: outs(%[[A]]
// CHECK: %[[ONE:.*]] = tensor.insert_slice {{.*}} into %arg2[0, 0]
// CHECK: tensor.extract_slice %[[ONE]][0, 8] [4, 2]
// CHECK: tensor.insert_slice {{.*}} into %[[ONE]][0, 8]
func.func @concat_writes_parts(%arg0: tensor<4x8xf32>, %arg1: tensor<4x2xf32>) -> tensor<4x10xf32> attributes {metadef.kernel} {
  %0 = "metadef.concat"(%arg0, %arg1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  return %0 : tensor<4x10xf32>
}

// CHECK-LABEL: @bool_is_a_byte
// CHECK-SAME: %arg0: tensor<4xi8>
// CHECK: %[[C:.*]] = arith.cmpi ne, %{{.*}}, %c0_i8 : i8
// CHECK-NEXT: arith.select %[[C]]
func.func @bool_is_a_byte(%arg0: tensor<4xi1>, %arg1: tensor<4xf32>, %arg2: tensor<4xf32>) -> tensor<4xf32> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0, %arg1, %arg2) {fn = "select", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @half_is_summed_in_f32
// CHECK: linalg.fill {{.*}} -> tensor<4x8xf32>
// CHECK: arith.extf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.mulf {{.*}} : f32
// CHECK-NEXT: arith.addf {{.*}} : f32
// CHECK: arith.truncf {{.*}} : f32 to bf16
func.func @half_is_summed_in_f32(%arg0: tensor<4x16xbf16>, %arg1: tensor<16x8xbf16>) -> tensor<4x8xbf16> attributes {metadef.kernel} {
  %0 = "metadef.contraction"(%arg0, %arg1) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x16xbf16>, tensor<16x8xbf16>) -> tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}

// CHECK-LABEL: @pads_before_a_convolution
// CHECK: %[[Z:.*]] = linalg.fill {{.*}} -> tensor<1x3x10x10xf32>
// CHECK-NEXT: tensor.extract_slice %[[Z]][0, 0, 1, 1] [1, 3, 8, 8]
// CHECK: %[[P:.*]] = tensor.insert_slice {{.*}} into %[[Z]][0, 0, 1, 1]
// CHECK: linalg.generic {indexing_maps = [#[[WINDOW]], #{{.*}}, #{{.*}}]
// CHECK-SAME: ins(%[[P]], %arg1
func.func @pads_before_a_convolution(%arg0: tensor<1x3x8x8xf32>, %arg1: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> attributes {metadef.kernel} {
  %0 = "metadef.conv"(%arg0, %arg1) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}

// CHECK-LABEL: @symbols_are_sorted_arguments
// CHECK-SAME: %arg1: tensor<?xf32> {bufferization.writable = true, metadef.dims = ["B*S"]}
// CHECK-SAME: %arg2: index {metadef.symbol = "B"}, %arg3: index {metadef.symbol = "S"}
// CHECK: tensor.collapse_shape %arg0
func.func @symbols_are_sorted_arguments(%arg0: tensor<?x?xf32, #metadef.dims<["S", "B"]>>) -> tensor<?xf32, #metadef.dims<["B*S"]>> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%arg0) {fn = "neg", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x?xf32, #metadef.dims<["S", "B"]>>) -> tensor<?x?xf32, #metadef.dims<["S", "B"]>>
  %1 = "metadef.reshape"(%0) : (tensor<?x?xf32, #metadef.dims<["S", "B"]>>) -> tensor<?xf32, #metadef.dims<["B*S"]>>
  return %1 : tensor<?xf32, #metadef.dims<["B*S"]>>
}

// Few long sums are made in parts, by several threads; many, or short ones, are not.
// CHECK-LABEL: @folds_few_long_rows_in_parts
// CHECK: tensor.empty() : tensor<1000xf32>
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK: iterator_types = ["reduction"]
// CHECK-NOT: linalg.generic
func.func @folds_few_long_rows_in_parts(%arg0: tensor<1000x1000xf32>) -> tensor<f32> attributes {metadef.kernel} {
  %0 = "metadef.reduce"(%arg0) {dims = array<i64: 0, 1>, fn = "sum", keepdim = false} : (tensor<1000x1000xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// CHECK-LABEL: @folds_many_rows_at_once
// CHECK: iterator_types = ["parallel", "reduction"]
// CHECK-NOT: linalg.generic
func.func @folds_many_rows_at_once(%arg0: tensor<64x100000xf32>) -> tensor<64xf32> attributes {metadef.kernel} {
  %0 = "metadef.reduce"(%arg0) {dims = array<i64: 1>, fn = "max", keepdim = false} : (tensor<64x100000xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// One update along each line is a choice, without a loop.
// CHECK-LABEL: @chooses_between_a_cache_and_its_update
// CHECK: linalg.generic
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK-NOT: scf.for
func.func @chooses_between_a_cache_and_its_update(%arg0: tensor<6x64x16xf32>, %arg1: tensor<6x1x16xf32>, %arg2: tensor<1xi64>) -> tensor<6x64x16xf32> attributes {metadef.kernel} {
  %0 = "metadef.index_put"(%arg0, %arg1, %arg2) {accumulate = false, dims = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<6x64x16xf32>, tensor<6x1x16xf32>, tensor<1xi64>) -> tensor<6x64x16xf32>
  return %0 : tensor<6x64x16xf32>
}

// CHECK-LABEL: @not_a_kernel
// CHECK: metadef.pointwise
func.func @not_a_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

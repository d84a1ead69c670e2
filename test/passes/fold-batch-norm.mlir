// RUN: metadef-opt %s --pass-pipeline='builtin.module(fold-batch-norm)' | filecheck %s

// CHECK-LABEL: @folds_scale_and_shift
// CHECK: %[[W:.*]] = "metadef.pointwise"({{.*}}) {fn = "mul", {{.*}}} : (tensor<8x3x3x3xf32>, tensor<8x1x1x1xf32>)
// CHECK: %[[Y:.*]] = "metadef.conv"(%arg0, %[[W]], %{{.*}})
// CHECK-NEXT: return %[[Y]]
func.func @folds_scale_and_shift(%x: tensor<?x3x8x8xf32, #metadef.dims<["B", 3, 8, 8]>>) -> tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x3x3x3xf32>
  %s = "metadef.weight"() {name = "s"} : () -> tensor<8x1x1xf32>
  %t = "metadef.weight"() {name = "t"} : () -> tensor<8x1x1xf32>
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<?x3x8x8xf32, #metadef.dims<["B", 3, 8, 8]>>, tensor<8x3x3x3xf32>) -> tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>>
  %1 = "metadef.pointwise"(%0, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>>, tensor<8x1x1xf32>) -> tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>>
  %2 = "metadef.pointwise"(%1, %t) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>>, tensor<8x1x1xf32>) -> tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>>
  return %2 : tensor<?x8x6x6xf32, #metadef.dims<["B", 8, 6, 6]>>
}

// CHECK-LABEL: @keeps_scale_along_space
// CHECK: metadef.conv
// CHECK-NEXT: fn = "mul"
func.func @keeps_scale_along_space(%x: tensor<1x3x8x8xf32>) -> tensor<1x8x6x6xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x3x3x3xf32>
  %s = "metadef.weight"() {name = "s"} : () -> tensor<6xf32>
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x6x6xf32>
  %1 = "metadef.pointwise"(%0, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x8x6x6xf32>, tensor<6xf32>) -> tensor<1x8x6x6xf32>
  return %1 : tensor<1x8x6x6xf32>
}

// CHECK-LABEL: @keeps_scale_that_is_computed
// CHECK: metadef.conv
// CHECK-NEXT: fn = "mul"
func.func @keeps_scale_that_is_computed(%x: tensor<1x3x8x8xf32>, %s: tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x3x3x3xf32>
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x6x6xf32>
  %1 = "metadef.pointwise"(%0, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x8x6x6xf32>, tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32>
  return %1 : tensor<1x8x6x6xf32>
}

// CHECK-LABEL: @keeps_value_with_two_uses
// CHECK: metadef.conv
// CHECK-NEXT: fn = "mul"
func.func @keeps_value_with_two_uses(%x: tensor<1x3x8x8xf32>) -> (tensor<1x8x6x6xf32>, tensor<1x8x6x6xf32>) {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x3x3x3xf32>
  %s = "metadef.weight"() {name = "s"} : () -> tensor<8x1x1xf32>
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x3x8x8xf32>, tensor<8x3x3x3xf32>) -> tensor<1x8x6x6xf32>
  %1 = "metadef.pointwise"(%0, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x8x6x6xf32>, tensor<8x1x1xf32>) -> tensor<1x8x6x6xf32>
  return %0, %1 : tensor<1x8x6x6xf32>, tensor<1x8x6x6xf32>
}

// A contraction keeps one add: it has no bias.
// CHECK-LABEL: @folds_scale_after_bias
// CHECK: %[[Y:.*]] = "metadef.contraction"
// CHECK-NEXT: %[[Z:.*]] = "metadef.pointwise"(%[[Y]], %{{.*}}) {fn = "add"
// CHECK-NEXT: return %[[Z]]
func.func @folds_scale_after_bias(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x4xf32>
  %b = "metadef.weight"() {name = "b"} : () -> tensor<8xf32>
  %s = "metadef.weight"() {name = "s"} : () -> tensor<8xf32>
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>, tensor<8x4xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %1 = "metadef.pointwise"(%0, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %2 = "metadef.pointwise"(%1, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return %2 : tensor<?x8xf32, #metadef.dims<["B", 8]>>
}

// RUN: metadef-opt %s --pass-pipeline='builtin.module(canonicalize-contractions,eliminate-dead-code)' | filecheck %s

// CHECK-LABEL: @turns_flags_and_merges_rows
// CHECK: %[[X:.*]] = "metadef.reshape"(%arg0) : {{.*}} -> tensor<?x4xf32, #metadef.dims<["B*S", 4]>>
// CHECK-NEXT: %[[Y:.*]] = "metadef.contraction"(%[[X]], %arg1) {transpose_lhs = false, transpose_rhs = true}
// CHECK-NEXT: %[[Z:.*]] = "metadef.pointwise"(%[[Y]], %arg2) {fn = "add"
// CHECK-NEXT: "metadef.reshape"(%[[Z]])
func.func @turns_flags_and_merges_rows(%x: tensor<?x?x4xf32, #metadef.dims<["B", "S", 4]>>, %w: tensor<8x4xf32>, %b: tensor<8xf32>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>> {
  %0 = "metadef.transpose"(%w) {perm = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = "metadef.contraction"(%x, %0) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x?x4xf32, #metadef.dims<["B", "S", 4]>>, tensor<4x8xf32>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  %2 = "metadef.pointwise"(%1, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, tensor<8xf32>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  return %2 : tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
}

// CHECK-LABEL: @keeps_batched_product
// CHECK-NEXT: "metadef.contraction"(%arg0, %arg1)
func.func @keeps_batched_product(%x: tensor<?x2x4xf32, #metadef.dims<["B", 2, 4]>>, %y: tensor<?x4x8xf32, #metadef.dims<["B", 4, 8]>>) -> tensor<?x2x8xf32, #metadef.dims<["B", 2, 8]>> {
  %0 = "metadef.contraction"(%x, %y) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x2x4xf32, #metadef.dims<["B", 2, 4]>>, tensor<?x4x8xf32, #metadef.dims<["B", 4, 8]>>) -> tensor<?x2x8xf32, #metadef.dims<["B", 2, 8]>>
  return %0 : tensor<?x2x8xf32, #metadef.dims<["B", 2, 8]>>
}

// CHECK-LABEL: @reads_broadcast_batch_directly
// CHECK-NOT: metadef.broadcast
// CHECK: metadef.contraction
// CHECK-SAME: (tensor<6x4xf32>, tensor<4x8xf32>)
func.func @reads_broadcast_batch_directly(%x: tensor<3x2x4xf32>, %y: tensor<1x4x8xf32>) -> tensor<3x2x8xf32> {
  %0 = "metadef.broadcast"(%y) : (tensor<1x4x8xf32>) -> tensor<3x4x8xf32>
  %1 = "metadef.contraction"(%x, %0) {transpose_lhs = false, transpose_rhs = false} : (tensor<3x2x4xf32>, tensor<3x4x8xf32>) -> tensor<3x2x8xf32>
  return %1 : tensor<3x2x8xf32>
}

// CHECK-LABEL: @does_not_fold_transpose_of_batch
// CHECK: metadef.transpose
// CHECK: transpose_rhs = false
func.func @does_not_fold_transpose_of_batch(%x: tensor<2x3x4xf32>, %y: tensor<4x2x5xf32>) -> tensor<2x3x5xf32> {
  %0 = "metadef.transpose"(%y) {perm = array<i64: 1, 0, 2>} : (tensor<4x2x5xf32>) -> tensor<2x4x5xf32>
  %1 = "metadef.contraction"(%x, %0) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}

// CHECK-LABEL: @pointwise_conv_is_a_product
// CHECK-NOT: metadef.conv
// CHECK: "metadef.contraction"
func.func @pointwise_conv_is_a_product(%x: tensor<?x6x6x4xf32, #metadef.dims<["B", 6, 6, 4]>>, %w: tensor<1x1x1x4x8xf32>) -> tensor<?x6x6x8xf32, #metadef.dims<["B", 6, 6, 8]>> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc"} : (tensor<?x6x6x4xf32, #metadef.dims<["B", 6, 6, 4]>>, tensor<1x1x1x4x8xf32>) -> tensor<?x6x6x8xf32, #metadef.dims<["B", 6, 6, 8]>>
  return %0 : tensor<?x6x6x8xf32, #metadef.dims<["B", 6, 6, 8]>>
}

// CHECK-LABEL: @padded_pointwise_conv_is_not
// CHECK: metadef.conv
func.func @padded_pointwise_conv_is_not(%x: tensor<1x6x6x4xf32>, %w: tensor<1x1x1x4x8xf32>) -> tensor<1x8x8x8xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc"} : (tensor<1x6x6x4xf32>, tensor<1x1x1x4x8xf32>) -> tensor<1x8x8x8xf32>
  return %0 : tensor<1x8x8x8xf32>
}

// A positional table varies along a merged dim.
// CHECK-LABEL: @does_not_sink_reshape_below_positions
// CHECK: metadef.contraction
// CHECK-NEXT: metadef.reshape
// CHECK-NEXT: fn = "add"
func.func @does_not_sink_reshape_below_positions(%x: tensor<?x5x4xf32, #metadef.dims<["B", 5, 4]>>, %w: tensor<4x8xf32>, %p: tensor<5x8xf32>) -> tensor<?x5x8xf32, #metadef.dims<["B", 5, 8]>> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x5x4xf32, #metadef.dims<["B", 5, 4]>>, tensor<4x8xf32>) -> tensor<?x5x8xf32, #metadef.dims<["B", 5, 8]>>
  %1 = "metadef.pointwise"(%0, %p) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x5x8xf32, #metadef.dims<["B", 5, 8]>>, tensor<5x8xf32>) -> tensor<?x5x8xf32, #metadef.dims<["B", 5, 8]>>
  return %1 : tensor<?x5x8xf32, #metadef.dims<["B", 5, 8]>>
}

// A bias of channels stands beside the pixels that the reshape splits.
// CHECK-LABEL: @sinks_reshape_below_bias_of_channels
// CHECK: metadef.contraction
// CHECK: %[[B:.*]] = "metadef.reshape"(%arg2) : (tensor<8x1x1xf32>) -> tensor<1x8x1xf32>
// CHECK: %[[Y:.*]] = "metadef.pointwise"(%{{.*}}, %[[B]]) {fn = "add"{{.*}} -> tensor<1x8x30xf32>
// CHECK: "metadef.reshape"(%[[Y]]) : (tensor<1x8x30xf32>) -> tensor<1x8x5x6xf32>
func.func @sinks_reshape_below_bias_of_channels(%w: tensor<8x4xf32>, %x: tensor<1x4x30xf32>, %b: tensor<8x1x1xf32>) -> tensor<1x8x5x6xf32> {
  %0 = "metadef.contraction"(%w, %x) {transpose_lhs = false, transpose_rhs = false} : (tensor<8x4xf32>, tensor<1x4x30xf32>) -> tensor<1x8x30xf32>
  %1 = "metadef.reshape"(%0) : (tensor<1x8x30xf32>) -> tensor<1x8x5x6xf32>
  %2 = "metadef.pointwise"(%1, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x8x5x6xf32>, tensor<8x1x1xf32>) -> tensor<1x8x5x6xf32>
  return %2 : tensor<1x8x5x6xf32>
}

// CHECK-LABEL: @does_not_sink_reshape_below_part_of_split_dims
// CHECK: metadef.contraction
// CHECK-NEXT: metadef.reshape
// CHECK-NEXT: fn = "add"
func.func @does_not_sink_reshape_below_part_of_split_dims(%w: tensor<8x4xf32>, %x: tensor<1x4x30xf32>, %b: tensor<6xf32>) -> tensor<1x8x5x6xf32> {
  %0 = "metadef.contraction"(%w, %x) {transpose_lhs = false, transpose_rhs = false} : (tensor<8x4xf32>, tensor<1x4x30xf32>) -> tensor<1x8x30xf32>
  %1 = "metadef.reshape"(%0) : (tensor<1x8x30xf32>) -> tensor<1x8x5x6xf32>
  %2 = "metadef.pointwise"(%1, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x8x5x6xf32>, tensor<6xf32>) -> tensor<1x8x5x6xf32>
  return %2 : tensor<1x8x5x6xf32>
}

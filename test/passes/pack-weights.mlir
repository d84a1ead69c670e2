// RUN: metadef-opt %s --pass-pipeline='builtin.module(pack-weights)' --split-input-file | filecheck %s

// A linear layer's weight [N, K] goes to panels of N: two vectors of a 512-bit device are 32 wide.
// CHECK-LABEL: func.func @packs_a_weight
// CHECK: %[[W:.*]] = "metadef.weight"
// CHECK: %[[S:.*]] = "metadef.reshape"(%[[W]]) : (tensor<64x16xf32>) -> tensor<[[P:[0-9]+]]x[[L:[0-9]+]]x16xf32>
// CHECK: %[[T:.*]] = "metadef.transpose"(%[[S]]) {perm = array<i64: 0, 2, 1>}
// CHECK: %[[U:.*]] = "metadef.unpack"(%[[T]]) {at = 0 : i64, dim = 0 : i64, size = 64 : i64}
// CHECK: "metadef.contraction"(%{{.*}}, %[[U]])
func.func @packs_a_weight(%x: tensor<8x16xf32>) -> tensor<8x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<64x16xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x16xf32>, tensor<64x16xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// A part of a panel is padded.
// CHECK-LABEL: func.func @pads_the_last_panel
// CHECK: "metadef.pad"
// CHECK: "metadef.unpack"(%{{.*}}) {at = 0 : i64, dim = 1 : i64, size = 100 : i64}
func.func @pads_the_last_panel(%x: tensor<?x16xf32, #metadef.dims<["B", 16]>>) -> tensor<?x100xf32, #metadef.dims<["B", 100]>> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<16x100xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x16xf32, #metadef.dims<["B", 16]>>, tensor<16x100xf32>) -> tensor<?x100xf32, #metadef.dims<["B", 100]>>
  return %y : tensor<?x100xf32, #metadef.dims<["B", 100]>>
}

// -----

// Depthwise: the groups run along the lanes.
// CHECK-LABEL: func.func @packs_groups_of_a_depthwise_convolution
// CHECK: "metadef.unpack"(%{{.*}}) {at = 0 : i64, dim = 0 : i64, size = 64 : i64}
func.func @packs_groups_of_a_depthwise_convolution(%x: tensor<1x8x8x64xf32>) -> tensor<1x6x6x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<64x3x3x1x1xf32>
  %y = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 64 : i64, layout = "nhwc"} : (tensor<1x8x8x64xf32>, tensor<64x3x3x1x1xf32>) -> tensor<1x6x6x64xf32>
  return %y : tensor<1x6x6x64xf32>
}

// -----

// A weight that is read turned around goes to its panels at once.
// CHECK-LABEL: func.func @turns_once
// CHECK: %[[W:.*]] = "metadef.weight"
// CHECK-NEXT: "metadef.reshape"(%[[W]]) : (tensor<64x8x3x3xf32>) -> tensor<2x32x8x3x3xf32>
// CHECK-NEXT: "metadef.transpose"(%{{.*}}) {perm = array<i64: 0, 3, 4, 2, 1>}
// CHECK-NEXT: "metadef.reshape"(%{{.*}}) : (tensor<2x3x3x8x32xf32>) -> tensor<1x2x3x3x8x32xf32>
// CHECK-NEXT: "metadef.unpack"(%{{.*}}) {at = 1 : i64, dim = 4 : i64, size = 64 : i64}
func.func @turns_once(%x: tensor<1x8x8x8xf32>) -> tensor<1x6x6x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<64x8x3x3xf32>
  %0 = "metadef.reshape"(%w) : (tensor<64x8x3x3xf32>) -> tensor<1x64x8x3x3xf32>
  %1 = "metadef.transpose"(%0) {perm = array<i64: 0, 3, 4, 2, 1>} : (tensor<1x64x8x3x3xf32>) -> tensor<1x3x3x8x64xf32>
  %y = "metadef.conv"(%x, %1) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc"} : (tensor<1x8x8x8xf32>, tensor<1x3x3x8x64xf32>) -> tensor<1x6x6x64xf32>
  return %y : tensor<1x6x6x64xf32>
}

// -----

// CHECK-LABEL: func.func @leaves_computed_operands
// CHECK-NOT: metadef.unpack
func.func @leaves_computed_operands(%x: tensor<8x16xf32>, %w: tensor<16x64xf32>) -> tensor<8x64xf32> {
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

// -----

// Narrow weights: panels of as many outputs as in f32, which is what registers hold.
// CHECK-LABEL: func.func @narrow
// CHECK: "metadef.unpack"(%{{.*}}) {{.*}} : (tensor<2x64x32xbf16>) -> tensor<64x64xbf16>
func.func @narrow(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<64x64xbf16>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<8x64xf32>, tensor<64x64xbf16>) -> tensor<8x64xf32>
  return %y : tensor<8x64xf32>
}

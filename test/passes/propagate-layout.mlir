// RUN: metadef-opt %s --pass-pipeline='builtin.module(propagate-layout)' | filecheck %s

// CHECK-LABEL: @runs_channels_last
// CHECK: "metadef.transpose"(%arg0) {perm = array<i64: 0, 2, 3, 1>}
// CHECK: layout = "nhwc"
// CHECK-NEXT: fn = "relu"
// CHECK-NOT: perm = array<i64: 0, 3, 1, 2>
// CHECK: layout = "nhwc"
// CHECK-NEXT: perm = array<i64: 0, 3, 1, 2>
// CHECK-NEXT: return
func.func @runs_channels_last(%x: tensor<?x3x?x?xf32, #metadef.dims<["B", 3, "H", "W"]>>, %w: tensor<64x3x3x3xf32>, %v: tensor<64x1x3x3xf32>) -> tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<?x3x?x?xf32, #metadef.dims<["B", 3, "H", "W"]>>, tensor<64x3x3x3xf32>) -> tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>>
  %1 = "metadef.pointwise"(%0) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>>) -> tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>>
  %2 = "metadef.conv"(%1, %v) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 64 : i64, layout = "nchw"} : (tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>>, tensor<64x1x3x3xf32>) -> tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>>
  return %2 : tensor<?x64x?x?xf32, #metadef.dims<["B", 64, "H", "W"]>>
}

// CHECK-LABEL: @meets_inverse
// CHECK: layout = "nhwc"
// CHECK-NOT: metadef.transpose
// CHECK: dims = array<i64: 1, 2>
// CHECK-NEXT: return
func.func @meets_inverse(%x: tensor<2x5x5x3xf32>, %w: tensor<64x3x3x3xf32>, %b: tensor<64x1x1xf32>) -> tensor<2x64xf32> {
  %0 = "metadef.transpose"(%x) {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x5x5x3xf32>) -> tensor<2x3x5x5xf32>
  %1 = "metadef.conv"(%0, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<2x3x5x5xf32>, tensor<64x3x3x3xf32>) -> tensor<2x64x5x5xf32>
  %2 = "metadef.pointwise"(%1, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x64x5x5xf32>, tensor<64x1x1xf32>) -> tensor<2x64x5x5xf32>
  %3 = "metadef.reduce"(%2) {fn = "mean", dims = array<i64: 2, 3>, keepdim = false} : (tensor<2x64x5x5xf32>) -> tensor<2x64xf32>
  return %3 : tensor<2x64xf32>
}

// Patches of a vision transformer: the reshape merges dims that are neighbours in nhwc too.
// CHECK-LABEL: @sinks_below_reshape
// CHECK: layout = "nhwc"
// CHECK-NEXT: "metadef.reshape"
// CHECK-NEXT: return
func.func @sinks_below_reshape(%x: tensor<2x5x5x3xf32>, %w: tensor<64x3x3x3xf32>) -> tensor<2x25x64xf32> {
  %0 = "metadef.transpose"(%x) {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x5x5x3xf32>) -> tensor<2x3x5x5xf32>
  %1 = "metadef.conv"(%0, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<2x3x5x5xf32>, tensor<64x3x3x3xf32>) -> tensor<2x64x5x5xf32>
  %2 = "metadef.reshape"(%1) : (tensor<2x64x5x5xf32>) -> tensor<2x64x25xf32>
  %3 = "metadef.transpose"(%2) {perm = array<i64: 0, 2, 1>} : (tensor<2x64x25xf32>) -> tensor<2x25x64xf32>
  return %3 : tensor<2x25x64xf32>
}

// CHECK-LABEL: @stops_at_reshape_that_mixes_channels
// CHECK: perm = array<i64: 0, 3, 1, 2>
// CHECK-NEXT: "metadef.reshape"
func.func @stops_at_reshape_that_mixes_channels(%x: tensor<2x3x5x5xf32>, %w: tensor<64x3x3x3xf32>) -> tensor<2x1600xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<2x3x5x5xf32>, tensor<64x3x3x3xf32>) -> tensor<2x64x5x5xf32>
  %1 = "metadef.reshape"(%0) : (tensor<2x64x5x5xf32>) -> tensor<2x1600xf32>
  return %1 : tensor<2x1600xf32>
}

// CHECK-LABEL: @leaves_transposes_alone_without_windows
// CHECK-NEXT: perm = array<i64: 0, 3, 1, 2>
// CHECK-NEXT: fn = "relu"
func.func @leaves_transposes_alone_without_windows(%x: tensor<2x5x5x3xf32>) -> tensor<2x3x5x5xf32> {
  %0 = "metadef.transpose"(%x) {perm = array<i64: 0, 3, 1, 2>} : (tensor<2x5x5x3xf32>) -> tensor<2x3x5x5xf32>
  %1 = "metadef.pointwise"(%0) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x3x5x5xf32>) -> tensor<2x3x5x5xf32>
  return %1 : tensor<2x3x5x5xf32>
}

// What nobody has channels last stays so for a depthwise convolution, and a 1x1 one is a product.
// CHECK-LABEL: @leaves_lone_depthwise_alone
// CHECK-NEXT: layout = "nchw"
// CHECK-NEXT: return
func.func @leaves_lone_depthwise_alone(%x: tensor<2x4x18x18xf32>, %w: tensor<4x1x3x3xf32>) -> tensor<2x4x16x16xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 4 : i64, layout = "nchw"} : (tensor<2x4x18x18xf32>, tensor<4x1x3x3xf32>) -> tensor<2x4x16x16xf32>
  return %0 : tensor<2x4x16x16xf32>
}

// Few outputs leave lanes empty with channels last, but spectra, which need them last, cost less yet;
// not of weights that each call brings.
// CHECK-LABEL: @counts_on_spectra
// CHECK: layout = "nhwc"
func.func @counts_on_spectra(%x: tensor<1x24x56x56xf32>) -> tensor<1x2x56x56xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<2x24x21x21xf32>
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 10, 10, 10, 10>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x24x56x56xf32>, tensor<2x24x21x21xf32>) -> tensor<1x2x56x56xf32>
  return %0 : tensor<1x2x56x56xf32>
}

// CHECK-LABEL: @knows_weights_too_late_for_spectra
// CHECK-NEXT: layout = "nchw"
func.func @knows_weights_too_late_for_spectra(%x: tensor<1x24x56x56xf32>, %w: tensor<2x24x21x21xf32>) -> tensor<1x2x56x56xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 10, 10, 10, 10>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x24x56x56xf32>, tensor<2x24x21x21xf32>) -> tensor<1x2x56x56xf32>
  return %0 : tensor<1x2x56x56xf32>
}

// CHECK-LABEL: @multiplies_lone_pixels
// CHECK-NOT: metadef.transpose
// CHECK: "metadef.contraction"{{.*}} (tensor<2x4x3xf32>, tensor<5x2x3x49xf32>) -> tensor<5x2x4x49xf32>
// CHECK-NOT: metadef.transpose
// CHECK: return
func.func @multiplies_lone_pixels(%x: tensor<5x6x7x7xf32>, %w: tensor<8x3x1x1xf32>, %b: tensor<8xf32>) -> tensor<5x8x7x7xf32> {
  %0 = "metadef.conv"(%x, %w, %b) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nchw"} : (tensor<5x6x7x7xf32>, tensor<8x3x1x1xf32>, tensor<8xf32>) -> tensor<5x8x7x7xf32>
  return %0 : tensor<5x8x7x7xf32>
}

// CHECK-LABEL: @turns_short_rows
// CHECK: layout = "nhwc"
func.func @turns_short_rows(%x: tensor<2x64x7x7xf32>, %w: tensor<64x1x3x3xf32>) -> tensor<2x64x5x5xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, groups = 64 : i64, layout = "nchw"} : (tensor<2x64x7x7xf32>, tensor<64x1x3x3xf32>) -> tensor<2x64x5x5xf32>
  return %0 : tensor<2x64x5x5xf32>
}

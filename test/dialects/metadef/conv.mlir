// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @nchw
// CHECK: "metadef.conv"({{.*}}) {dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>
// CHECK-SAME: : (tensor<?x4x?x9xf32, #metadef.dims<["B", 4, "H", 9]>>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<?x6x?x5xf32, #metadef.dims<["B", 6, "floordiv(H - 1, 2) + 1", 5]>>
func.func @nchw(%a: tensor<?x4x?x9xf32, #metadef.dims<["B", 4, "H", 9]>>, %b: tensor<6x2x3x3xf32>, %c: tensor<6xf32>) {
  %0 = "metadef.conv"(%a, %b, %c) {dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x4x?x9xf32, #metadef.dims<["B", 4, "H", 9]>>, tensor<6x2x3x3xf32>, tensor<6xf32>) -> tensor<?x6x?x5xf32, #metadef.dims<["B", 6, "floordiv(H - 1, 2) + 1", 5]>>
  return
}

// CHECK-LABEL: @nhwc
// CHECK: "metadef.conv"({{.*}}) {dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>
// CHECK-SAME: : (tensor<1x9x9x4xf32>, tensor<2x3x3x2x3xf32>) -> tensor<1x7x7x6xf32>
func.func @nhwc(%a: tensor<1x9x9x4xf32>, %b: tensor<2x3x3x2x3xf32>) {
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nhwc", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x9x9x4xf32>, tensor<2x3x3x2x3xf32>) -> tensor<1x7x7x6xf32>
  return
}

// CHECK-LABEL: @one_dim
// CHECK: "metadef.conv"({{.*}}) {dilations = array<i64: 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0>, strides = array<i64: 1>
// CHECK-SAME: : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1x6x7xf32>
func.func @one_dim(%a: tensor<1x4x9xf32>, %b: tensor<6x4x3xf32>) {
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0>, strides = array<i64: 1>} : (tensor<1x4x9xf32>, tensor<6x4x3xf32>) -> tensor<1x6x7xf32>
  return
}

// -----

func.func @ranks_differ(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3xf32>) {
  // expected-error @+1 {{conv-C1: x has batch, channel and spatial dims, w has rank + 1 in nhwc}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

func.func @padding_for_one_dim(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{conv-C2: strides, dilations have one entry a spatial dim, padding two}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

func.func @zero_stride(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{conv-C3: strides, dilations and groups are positive}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 0, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

func.func @channels_differ(%a: tensor<1x4x9x9xf32>, %b: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{conv-C4: channels of x are groups times those of w, got 4 channels of [1, 4, 9, 9]xf32, 1 groups of 3}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x3x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

func.func @groups_do_not_divide(%a: tensor<1x4x9x9xf32>, %b: tensor<5x2x3x3xf32>) {
  // expected-error @+1 {{conv-C5: output channels are a multiple of groups, got 5 for 2 groups}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<5x2x3x3xf32>) -> tensor<1x5x7x7xf32>
  return
}

// -----

func.func @bias_of_other_size(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3x3xf32>, %c: tensor<5xf32>) {
  // expected-error @+1 {{conv-C6: bias is [O]}}
  %0 = "metadef.conv"(%a, %b, %c) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>, tensor<5xf32>) -> tensor<1x6x7x7xf32>
  return
}

// -----

func.func @kernel_larger_than_input(%a: tensor<1x4x2x2xf32>, %b: tensor<6x4x5x5xf32>) {
  // expected-error @+1 {{conv-C7: the padded input holds the dilated kernel}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x2x2xf32>, tensor<6x4x5x5xf32>) -> tensor<1x6x1x1xf32>
  return
}

// -----

func.func @mixed_types(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3x3xf16>) {
  // expected-error @+1 {{conv-C8: operands have one element type, got f32 and f16}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf16>) -> tensor<1x6x7x7xf32>
  return
}

// -----

func.func @wrong_result(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{conv-result: the result type follows from the operands, got dim 2 = 8 where 7 follows}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x8x7xf32>
  return
}

// -----

func.func @unknown_layout(%a: tensor<1x4x9x9xf32>, %b: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{attribute 'layout' must be one of nchw, nhwc, got 'chwn'}}
  %0 = "metadef.conv"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "chwn", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x4x9x9xf32>, tensor<6x4x3x3xf32>) -> tensor<1x6x7x7xf32>
  return
}

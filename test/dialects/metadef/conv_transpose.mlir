// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.conv_transpose"({{.*}}) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>
// CHECK-SAME: : (tensor<?x4x?x5xf32, #metadef.dims<["B", 4, "H", 5]>>, tensor<4x3x2x2xf32>, tensor<3xf32>) -> tensor<?x3x?x10xf32, #metadef.dims<["B", 3, "2*H", 10]>>
func.func @round_trip(%a: tensor<?x4x?x5xf32, #metadef.dims<["B", 4, "H", 5]>>, %b: tensor<4x3x2x2xf32>, %c: tensor<3xf32>) {
  %0 = "metadef.conv_transpose"(%a, %b, %c) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<?x4x?x5xf32, #metadef.dims<["B", 4, "H", 5]>>, tensor<4x3x2x2xf32>, tensor<3xf32>) -> tensor<?x3x?x10xf32, #metadef.dims<["B", 3, "2*H", 10]>>
  return
}

// CHECK-LABEL: @grouped
// CHECK: "metadef.conv_transpose"({{.*}}) {dilations = array<i64: 1, 1>, groups = 2 : i64, output_padding = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>
// CHECK-SAME: : (tensor<1x4x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x10x10xf32>
func.func @grouped(%a: tensor<1x4x5x5xf32>, %b: tensor<4x3x3x3xf32>) {
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 2 : i64, output_padding = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<4x3x3x3xf32>) -> tensor<1x6x10x10xf32>
  return
}

// -----

func.func @ranks_differ(%a: tensor<1x4x5x5xf32>, %b: tensor<4x3x2xf32>) {
  // expected-error @+1 {{conv_transpose-C1: x and w have equal rank, with batch, channel, spatial dims}}
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<4x3x2xf32>) -> tensor<1x3x10x10xf32>
  return
}

// -----

func.func @padding_for_one_dim(%a: tensor<1x4x5x5xf32>, %b: tensor<4x3x2x2xf32>) {
  // expected-error @+1 {{conv_transpose-C2: strides, dilations, output_padding have one entry a dim, padding two}}
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<4x3x2x2xf32>) -> tensor<1x3x10x10xf32>
  return
}

// -----

func.func @groups_do_not_divide(%a: tensor<1x4x5x5xf32>, %b: tensor<4x3x2x2xf32>) {
  // expected-error @+1 {{conv_transpose-C3: strides, dilations, groups are positive, and groups divide I}}
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 3 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<4x3x2x2xf32>) -> tensor<1x9x10x10xf32>
  return
}

// -----

func.func @channels_differ(%a: tensor<1x4x5x5xf32>, %b: tensor<5x3x2x2xf32>) {
  // expected-error @+1 {{conv_transpose-C4: channels of x are the first dim of w}}
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<5x3x2x2xf32>) -> tensor<1x3x10x10xf32>
  return
}

// -----

func.func @bias_of_other_size(%a: tensor<1x4x5x5xf32>, %b: tensor<4x3x2x2xf32>, %c: tensor<4xf32>) {
  // expected-error @+1 {{conv_transpose-C5: bias is [O], got [4]xf32 for O=3}}
  %0 = "metadef.conv_transpose"(%a, %b, %c) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<4x3x2x2xf32>, tensor<4xf32>) -> tensor<1x3x10x10xf32>
  return
}

// -----

func.func @mixed_types(%a: tensor<1x4x5x5xf32>, %b: tensor<4x3x2x2xf64>) {
  // expected-error @+1 {{conv_transpose-C6: operands have one element type, got f32 and f64}}
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x5x5xf32>, tensor<4x3x2x2xf64>) -> tensor<1x3x10x10xf32>
  return
}

// -----

func.func @negative_result(%a: tensor<1x4x1x1xf32>, %b: tensor<4x3x2x2xf32>) {
  // expected-error @+1 {{conv_transpose-C7: no dim of the result is negative, got -2}}
  %0 = "metadef.conv_transpose"(%a, %b) {dilations = array<i64: 1, 1>, groups = 1 : i64, output_padding = array<i64: 0, 0>, padding = array<i64: 2, 2, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x1x1xf32>, tensor<4x3x2x2xf32>) -> tensor<1x3x2x2xf32>
  return
}

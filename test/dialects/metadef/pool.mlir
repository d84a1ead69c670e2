// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @nchw
// CHECK: "metadef.pool"({{.*}}) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>
// CHECK-SAME: : (tensor<?x4x9x9xf32, #metadef.dims<["B", 4, 9, 9]>>) -> tensor<?x4x5x5xf32, #metadef.dims<["B", 4, 5, 5]>>
func.func @nchw(%a: tensor<?x4x9x9xf32, #metadef.dims<["B", 4, 9, 9]>>) {
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<?x4x9x9xf32, #metadef.dims<["B", 4, 9, 9]>>) -> tensor<?x4x5x5xf32, #metadef.dims<["B", 4, 5, 5]>>
  return
}

// CHECK-LABEL: @nhwc
// CHECK: "metadef.pool"({{.*}}) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "avg", kernel = array<i64: 3, 3>, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>
// CHECK-SAME: : (tensor<1x9x9x4xf32>) -> tensor<1x5x5x4xf32>
func.func @nhwc(%a: tensor<1x9x9x4xf32>) {
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "avg", kernel = array<i64: 3, 3>, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x9x9x4xf32>) -> tensor<1x5x5x4xf32>
  return
}

// CHECK-LABEL: @max_of_integers
// CHECK: "metadef.pool"({{.*}}) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>
// CHECK-SAME: : (tensor<1x4x9x9xi8>) -> tensor<1x4x5x5xi8>
func.func @max_of_integers(%a: tensor<1x4x9x9xi8>) {
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x4x9x9xi8>) -> tensor<1x4x5x5xi8>
  return
}

// -----

func.func @of_a_matrix(%a: tensor<4x9xf32>) {
  // expected-error @+1 {{pool-C1: x has batch, channel and spatial dims, got [4, 9]xf32}}
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<4x9xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @kernel_for_one_dim(%a: tensor<1x4x9x9xf32>) {
  // expected-error @+1 {{pool-C2: kernel, strides, dilations have one entry a spatial dim, padding two}}
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x4x9x9xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @zero_stride(%a: tensor<1x4x9x9xf32>) {
  // expected-error @+1 {{pool-C3: kernel, strides and dilations are positive}}
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 0, 1>} : (tensor<1x4x9x9xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @kernel_larger_than_input(%a: tensor<1x4x2x2xf32>) {
  // expected-error @+1 {{pool-C4: the padded input holds the dilated kernel, got an output dim of}}
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "max", kernel = array<i64: 9, 9>, layout = "nchw", padding = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x4x2x2xf32>) -> tensor<1x4x1x1xf32>
  return
}

// -----

func.func @avg_of_integers(%a: tensor<1x4x9x9xi8>) {
  // expected-error @+1 {{pool-C5: avg is of floats, max of numbers, got 'avg' on i8}}
  %0 = "metadef.pool"(%a) {count_include_pad = true, dilations = array<i64: 1, 1>, fn = "avg", kernel = array<i64: 3, 3>, layout = "nchw", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x4x9x9xi8>) -> tensor<1x4x5x5xi8>
  return
}

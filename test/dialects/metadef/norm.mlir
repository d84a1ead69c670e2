// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @layer
// CHECK: "metadef.norm"({{.*}}) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "layer"
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @layer(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>, %b: tensor<8xf32>, %c: tensor<8xf32>) {
  %0 = "metadef.norm"(%a, %b, %c) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "layer", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// CHECK-LABEL: @rms_without_bias
// CHECK: "metadef.norm"({{.*}}) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "rms"
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @rms_without_bias(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>, %b: tensor<8xf32>) {
  %0 = "metadef.norm"(%a, %b) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "rms", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// CHECK-LABEL: @without_scale
// CHECK: "metadef.norm"({{.*}}) {axes = 2 : i64, eps = 1.000000e-05 : f64, kind = "layer"
// CHECK-SAME: : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
func.func @without_scale(%a: tensor<2x4x8xf32>) {
  %0 = "metadef.norm"(%a) {axes = 2 : i64, eps = 1.000000e-05 : f64, kind = "layer", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  return
}

// -----

func.func @too_many_axes(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{norm-C1: axes is between 1 and the rank of x, got axes 3 of rank 2}}
  %0 = "metadef.norm"(%a) {axes = 3 : i64, eps = 1.000000e-05 : f64, kind = "layer", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @scale_of_other_dims(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error @+1 {{norm-C2: scale and bias have the normalised dims and element type of x, got [4]xf32 for [8]xf32}}
  %0 = "metadef.norm"(%a, %b) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "layer", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @of_integers(%a: tensor<4x8xi32>) {
  // expected-error @+1 {{norm-C3: x is of floats, got i32}}
  %0 = "metadef.norm"(%a) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "layer", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xi32>) -> tensor<4x8xi32>
  return
}

// -----

func.func @unknown_kind(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{attribute 'kind' must be one of layer, rms, got 'batch'}}
  %0 = "metadef.norm"(%a) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "batch", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @three_params(%a: tensor<4x8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>) {
  // expected-error @+1 {{norm-C4: params are at most scale and bias, got 3 params}}
  %0 = "metadef.norm"(%a, %b, %c, %d) {axes = 1 : i64, eps = 1.000000e-05 : f64, kind = "layer", operandSegmentSizes = array<i32: 1, 1, 2>} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.quantize"
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8x!quant.uniform<i8:f32, 5.000000e-01:3>, #metadef.dims<["B", 8]>>
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.quantize"(%a) : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8x!quant.uniform<i8:f32, 5.000000e-01:3>, #metadef.dims<["B", 8]>>
  return
}

// -----

func.func @of_integers(%a: tensor<4xi32>) {
  // expected-error @+1 {{quantize-C1: x is of floats, got i32}}
  %0 = "metadef.quantize"(%a) : (tensor<4xi32>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
  return
}

// -----

func.func @to_plain_integers(%a: tensor<4xf32>) {
  // expected-error @+1 {{quantize-C2: the result's element type is quantised, of x's float type, got i8}}
  %0 = "metadef.quantize"(%a) : (tensor<4xf32>) -> tensor<4xi8>
  return
}

// -----

func.func @of_other_floats(%a: tensor<4xf64>) {
  // expected-error @+1 {{quantize-C2: the result's element type is quantised, of x's float type}}
  %0 = "metadef.quantize"(%a) : (tensor<4xf64>) -> tensor<4x!quant.uniform<i8:f32, 5.000000e-01:3>>
  return
}

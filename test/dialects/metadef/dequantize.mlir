// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.dequantize"
// CHECK-SAME: : (tensor<?x8x!quant.uniform<i8:f32, 5.000000e-01:3>, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @round_trip(%a: tensor<?x8x!quant.uniform<i8:f32, 5.000000e-01:3>, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.dequantize"(%a) : (tensor<?x8x!quant.uniform<i8:f32, 5.000000e-01:3>, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// -----

func.func @of_plain_integers(%a: tensor<4xi8>) {
  // expected-error @+1 {{dequantize-C1: x has a quantised element type, got i8}}
  %0 = "metadef.dequantize"(%a) : (tensor<4xi8>) -> tensor<4xf32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.broadcast"
// CHECK-SAME: : (tensor<1x8xf32>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
func.func @round_trip(%a: tensor<1x8xf32>) {
  %0 = "metadef.broadcast"(%a) : (tensor<1x8xf32>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  return
}

// -----

func.func @stretches_two(%a: tensor<2x8xf32>) {
  // expected-error @+1 {{broadcast-C1: each dim of x is 1 or the result's, got [2, 8]xf32 to [4, 8]xf32}}
  %0 = "metadef.broadcast"(%a) : (tensor<2x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @drops_dims(%a: tensor<1x8xf32>) {
  // expected-error @+1 {{broadcast-C1: each dim of x is 1 or the result's}}
  %0 = "metadef.broadcast"(%a) : (tensor<1x8xf32>) -> tensor<8xf32>
  return
}

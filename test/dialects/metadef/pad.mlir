// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.pad"({{.*}}) {high = array<i64: 0, 2>, low = array<i64: 0, 1>, mode = "constant", value = 0.000000e+00 : f32
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x11xf32, #metadef.dims<["B", 11]>>
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.pad"(%a) {high = array<i64: 0, 2>, low = array<i64: 0, 1>, mode = "constant", value = 0.000000e+00 : f32} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x11xf32, #metadef.dims<["B", 11]>>
  return
}

// CHECK-LABEL: @cuts
// CHECK: "metadef.pad"({{.*}}) {high = array<i64: 0, -2>, low = array<i64: 0, -1>, mode = "constant", value = 0.000000e+00 : f32
// CHECK-SAME: : (tensor<4x8xf32>) -> tensor<4x5xf32>
func.func @cuts(%a: tensor<4x8xf32>) {
  %0 = "metadef.pad"(%a) {high = array<i64: 0, -2>, low = array<i64: 0, -1>, mode = "constant", value = 0.000000e+00 : f32} : (tensor<4x8xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @low_for_one_dim(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{pad-C1: low and high have one entry a dim}}
  %0 = "metadef.pad"(%a) {high = array<i64: 0, 2>, low = array<i64: 1>, mode = "constant", value = 0.000000e+00 : f32} : (tensor<4x8xf32>) -> tensor<4x11xf32>
  return
}

// -----

func.func @cuts_too_much(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{pad-C2: no dim becomes negative, got dim 1 = -2}}
  %0 = "metadef.pad"(%a) {high = array<i64: 0, -5>, low = array<i64: 0, -5>, mode = "constant", value = 0.000000e+00 : f32} : (tensor<4x8xf32>) -> tensor<4x0xf32>
  return
}

// -----

func.func @value_of_another_type(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{pad-C3: value is a number of the element type, got i64 for f32}}
  %0 = "metadef.pad"(%a) {high = array<i64: 0, 2>, low = array<i64: 0, 1>, mode = "constant", value = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x11xf32>
  return
}

// -----

func.func @reflects_too_much(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{pad-C4: reflect adds less than the dim at either end, circular at most the dim, got 8 for dim 1 = 8}}
  %0 = "metadef.pad"(%a) {high = array<i64: 0, 0>, low = array<i64: 0, 8>, mode = "reflect", value = 0.000000e+00 : f32} : (tensor<4x8xf32>) -> tensor<4x16xf32>
  return
}

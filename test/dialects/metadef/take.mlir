// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.take"({{.*}}) {dim = 0 : i64
// CHECK-SAME: : (tensor<100x8xf32>, tensor<?x?xi64, #metadef.dims<["B", "S"]>>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
func.func @round_trip(%a: tensor<100x8xf32>, %b: tensor<?x?xi64, #metadef.dims<["B", "S"]>>) {
  %0 = "metadef.take"(%a, %b) {dim = 0 : i64} : (tensor<100x8xf32>, tensor<?x?xi64, #metadef.dims<["B", "S"]>>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{take-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0 = "metadef.take"(%a, %b) {dim = 2 : i64} : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  return
}

// -----

func.func @float_indices(%a: tensor<4x8xf32>, %b: tensor<3xf32>) {
  // expected-error @+1 {{take-C2: indices are integers, got f32}}
  %0 = "metadef.take"(%a, %b) {dim = 0 : i64} : (tensor<4x8xf32>, tensor<3xf32>) -> tensor<3x8xf32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.softmax"({{.*}}) {dim = 1 : i64, log = false
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.softmax"(%a) {dim = 1 : i64, log = false} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{softmax-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0 = "metadef.softmax"(%a) {dim = 2 : i64, log = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @of_integers(%a: tensor<4x8xi32>) {
  // expected-error @+1 {{softmax-C2: x is of floats, got i32}}
  %0 = "metadef.softmax"(%a) {dim = 1 : i64, log = false} : (tensor<4x8xi32>) -> tensor<4x8xi32>
  return
}

// -----

func.func @wrong_result(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{softmax-result: the result type follows from the operands, got dim 0 = 5 where 4 follows}}
  %0 = "metadef.softmax"(%a) {dim = 1 : i64, log = false} : (tensor<4x8xf32>) -> tensor<5x8xf32>
  return
}

// -----

func.func @missing_attribute(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{attribute 'log' is missing, expected a bool}}
  %0 = "metadef.softmax"(%a) {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @log_is_not_a_bool(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{attribute 'log' must be a bool, got 1 : i64}}
  %0 = "metadef.softmax"(%a) {dim = 1 : i64, log = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

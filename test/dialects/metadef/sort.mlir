// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.sort"({{.*}}) {descending = true, dim = 1 : i64, stable = false
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x8xi64, #metadef.dims<["B", 8]>>)
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0:2 = "metadef.sort"(%a) {descending = true, dim = 1 : i64, stable = false} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x8xi64, #metadef.dims<["B", 8]>>)
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{sort-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0:2 = "metadef.sort"(%a) {descending = true, dim = 2 : i64, stable = false} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xi64>)
  return
}

// -----

func.func @indices_of_floats(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{sort-result: the result type follows from the operands, got element type f32 where i64 follows}}
  %0:2 = "metadef.sort"(%a) {descending = true, dim = 1 : i64, stable = false} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  return
}

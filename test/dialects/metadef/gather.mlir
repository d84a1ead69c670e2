// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.gather"({{.*}}) {dim = 1 : i64
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x3xi64, #metadef.dims<["B", 3]>>) -> tensor<?x3xf32, #metadef.dims<["B", 3]>>
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>, %b: tensor<?x3xi64, #metadef.dims<["B", 3]>>) {
  %0 = "metadef.gather"(%a, %b) {dim = 1 : i64} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x3xi64, #metadef.dims<["B", 3]>>) -> tensor<?x3xf32, #metadef.dims<["B", 3]>>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>, %b: tensor<4x3xi64>) {
  // expected-error @+1 {{gather-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0 = "metadef.gather"(%a, %b) {dim = 2 : i64} : (tensor<4x8xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>
  return
}

// -----

func.func @rank_differs(%a: tensor<4x8xf32>, %b: tensor<3xi64>) {
  // expected-error @+1 {{gather-C2: indices are integers of x's rank, got [3]xi64 for [4, 8]xf32}}
  %0 = "metadef.gather"(%a, %b) {dim = 1 : i64} : (tensor<4x8xf32>, tensor<3xi64>) -> tensor<3xf32>
  return
}

// -----

func.func @more_rows_than_x(%a: tensor<4x8xf32>, %b: tensor<5x3xi64>) {
  // expected-error @+1 {{gather-C3: indices exceed x in no dim but `dim`, got [5, 3]xi64 for [4, 8]xf32}}
  %0 = "metadef.gather"(%a, %b) {dim = 1 : i64} : (tensor<4x8xf32>, tensor<5x3xi64>) -> tensor<5x3xf32>
  return
}

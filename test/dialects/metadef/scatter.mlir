// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.scatter"({{.*}}) {dim = 1 : i64, reduce = "add"
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x3xi64, #metadef.dims<["B", 3]>>, tensor<?x3xf32, #metadef.dims<["B", 3]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>, %b: tensor<?x3xi64, #metadef.dims<["B", 3]>>, %c: tensor<?x3xf32, #metadef.dims<["B", 3]>>) {
  %0 = "metadef.scatter"(%a, %b, %c) {dim = 1 : i64, reduce = "add"} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x3xi64, #metadef.dims<["B", 3]>>, tensor<?x3xf32, #metadef.dims<["B", 3]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>, %b: tensor<4x3xi64>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{scatter-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0 = "metadef.scatter"(%a, %b, %c) {dim = 2 : i64, reduce = "add"} : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @float_indices(%a: tensor<4x8xf32>, %b: tensor<4x3xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{scatter-C2: indices are integers of x's rank, got [4, 3]xf32 for [4, 8]xf32}}
  %0 = "metadef.scatter"(%a, %b, %c) {dim = 1 : i64, reduce = "add"} : (tensor<4x8xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @too_few_updates(%a: tensor<4x8xf32>, %b: tensor<4x3xi64>, %c: tensor<4x2xf32>) {
  // expected-error @+1 {{scatter-C3: updates have x's rank and element type and hold an element an index, got [4, 2]xf32}}
  %0 = "metadef.scatter"(%a, %b, %c) {dim = 1 : i64, reduce = "add"} : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @more_rows_than_x(%a: tensor<4x8xf32>, %b: tensor<5x3xi64>, %c: tensor<5x3xf32>) {
  // expected-error @+1 {{scatter-C4: indices exceed x in no dim but `dim`, got [5, 3]xi64}}
  %0 = "metadef.scatter"(%a, %b, %c) {dim = 1 : i64, reduce = "add"} : (tensor<4x8xf32>, tensor<5x3xi64>, tensor<5x3xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @unknown_reduce(%a: tensor<4x8xf32>, %b: tensor<4x3xi64>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{attribute 'reduce' must be one of none, add, mul, max, min, got 'sum'}}
  %0 = "metadef.scatter"(%a, %b, %c) {dim = 1 : i64, reduce = "sum"} : (tensor<4x8xf32>, tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<4x8xf32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.index_put"({{.*}}) {accumulate = true, dims = array<i64: 0, 1>
// CHECK-SAME: : (tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>, tensor<2x3x4xf32>, tensor<2x1xi64>, tensor<3xi64>) -> tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>
func.func @round_trip(%a: tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>, %b: tensor<2x3x4xf32>, %c: tensor<2x1xi64>, %d: tensor<3xi64>) {
  %0 = "metadef.index_put"(%a, %b, %c, %d) {accumulate = true, dims = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>, tensor<2x3x4xf32>, tensor<2x1xi64>, tensor<3xi64>) -> tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>
  return
}

// -----

func.func @dims_not_increasing(%a: tensor<4x8xf32>, %b: tensor<3xf32>, %c: tensor<3xi64>, %d: tensor<3xi64>) {
  // expected-error @+1 {{index_put-C1: dims are increasing axes of x, one for each index tensor, got dims [1, 0]}}
  %0 = "metadef.index_put"(%a, %b, %c, %d) {accumulate = true, dims = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>, tensor<3xf32>, tensor<3xi64>, tensor<3xi64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @indices_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<3xf32>, %c: tensor<3xi64>, %d: tensor<2xi64>) {
  // expected-error @+1 {{index_put-C2: indices are integers that broadcast together, got [3]xi64, [2]xi64}}
  %0 = "metadef.index_put"(%a, %b, %c, %d) {accumulate = true, dims = array<i64: 0, 1>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>, tensor<3xf32>, tensor<3xi64>, tensor<2xi64>) -> tensor<4x8xf32>
  return
}

// -----

func.func @updates_do_not_broadcast(%a: tensor<4x8xf32>, %b: tensor<2x8xf32>, %c: tensor<3xi64>) {
  // expected-error @+1 {{index_put-C3: updates have x's element type and broadcast to the indexed shape, got [2, 8]xf32 for [3, 8]xf32}}
  %0 = "metadef.index_put"(%a, %b, %c) {accumulate = true, dims = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>, tensor<2x8xf32>, tensor<3xi64>) -> tensor<4x8xf32>
  return
}

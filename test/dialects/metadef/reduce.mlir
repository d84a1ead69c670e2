// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.reduce"({{.*}}) {dims = array<i64: 1, 2>, fn = "sum", keepdim = false
// CHECK-SAME: : (tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>) -> tensor<?xf32, #metadef.dims<["B"]>>
func.func @round_trip(%a: tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>) {
  %0 = "metadef.reduce"(%a) {dims = array<i64: 1, 2>, fn = "sum", keepdim = false} : (tensor<?x8x4xf32, #metadef.dims<["B", 8, 4]>>) -> tensor<?xf32, #metadef.dims<["B"]>>
  return
}

// CHECK-LABEL: @keeps_dims
// CHECK: "metadef.reduce"({{.*}}) {dims = array<i64: 1>, fn = "max", keepdim = true
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x1xf32, #metadef.dims<["B", 1]>>
func.func @keeps_dims(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.reduce"(%a) {dims = array<i64: 1>, fn = "max", keepdim = true} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x1xf32, #metadef.dims<["B", 1]>>
  return
}

// CHECK-LABEL: @gives_indices
// CHECK: "metadef.reduce"({{.*}}) {dims = array<i64: 1>, fn = "argmax", keepdim = false
// CHECK-SAME: : (tensor<4x8xf32>) -> tensor<4xi64>
func.func @gives_indices(%a: tensor<4x8xf32>) {
  %0 = "metadef.reduce"(%a) {dims = array<i64: 1>, fn = "argmax", keepdim = false} : (tensor<4x8xf32>) -> tensor<4xi64>
  return
}

// -----

func.func @repeated_dim(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{reduce-C1: dims are distinct axes of x, got dims [1, 1] of rank 2}}
  %0 = "metadef.reduce"(%a) {dims = array<i64: 1, 1>, fn = "sum", keepdim = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @any_of_floats(%a: tensor<4xf32>) {
  // expected-error @+1 {{reduce-C2: fn is defined for the element type, got 'any' on f32, expected i1}}
  %0 = "metadef.reduce"(%a) {dims = array<i64: 0>, fn = "any", keepdim = false} : (tensor<4xf32>) -> tensor<i1>
  return
}

// -----

func.func @mean_of_integers(%a: tensor<4xi64>) {
  // expected-error @+1 {{reduce-C2: fn is defined for the element type, got 'mean' on i64, expected float}}
  %0 = "metadef.reduce"(%a) {dims = array<i64: 0>, fn = "mean", keepdim = false} : (tensor<4xi64>) -> tensor<i64>
  return
}

// -----

func.func @argmax_of_two_dims(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{reduce-C3: argmax and argmin reduce one dim, got dims [0, 1]}}
  %0 = "metadef.reduce"(%a) {dims = array<i64: 0, 1>, fn = "argmax", keepdim = false} : (tensor<4x8xf32>) -> tensor<i64>
  return
}

// -----

func.func @unknown_fn(%a: tensor<4xf32>) {
  // expected-error @+1 {{attribute 'fn' must be one of sum, mean, prod, max, min, any, all, argmax, argmin, got 'summ'; did you mean 'sum'}}
  %0 = "metadef.reduce"(%a) {dims = array<i64: 0>, fn = "summ", keepdim = false} : (tensor<4xf32>) -> tensor<f32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.scan"({{.*}}) {dim = 1 : i64, fn = "sum", reverse = false
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>) {
  %0 = "metadef.scan"(%a) {dim = 1 : i64, fn = "sum", reverse = false} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{scan-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0 = "metadef.scan"(%a) {dim = 2 : i64, fn = "sum", reverse = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @logsumexp_of_integers(%a: tensor<4x8xi64>) {
  // expected-error @+1 {{scan-C2: fn is defined for the element type, got 'logsumexp' on i64}}
  %0 = "metadef.scan"(%a) {dim = 1 : i64, fn = "logsumexp", reverse = false} : (tensor<4x8xi64>) -> tensor<4x8xi64>
  return
}

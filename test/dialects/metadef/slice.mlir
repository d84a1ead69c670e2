// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.slice"({{.*}}) {dim = 1 : i64, start = "S - 1", step = 1 : i64
// CHECK-SAME: : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x1x8xf32, #metadef.dims<["B", 1, 8]>>
func.func @round_trip(%a: tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) {
  %0 = "metadef.slice"(%a) {dim = 1 : i64, start = "S - 1", step = 1 : i64} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x1x8xf32, #metadef.dims<["B", 1, 8]>>
  return
}

// CHECK-LABEL: @backwards
// CHECK: "metadef.slice"({{.*}}) {dim = 1 : i64, start = "7", step = -1 : i64
// CHECK-SAME: : (tensor<4x8xf32>) -> tensor<4x8xf32>
func.func @backwards(%a: tensor<4x8xf32>) {
  %0 = "metadef.slice"(%a) {dim = 1 : i64, start = "7", step = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: @empty
// CHECK: "metadef.slice"({{.*}}) {dim = 1 : i64, start = "8", step = 1 : i64
// CHECK-SAME: : (tensor<4x8xf32>) -> tensor<4x0xf32>
func.func @empty(%a: tensor<4x8xf32>) {
  %0 = "metadef.slice"(%a) {dim = 1 : i64, start = "8", step = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x0xf32>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{slice-C1: dim is an axis of x, got dim 2 of rank 2}}
  %0 = "metadef.slice"(%a) {dim = 2 : i64, start = "0", step = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @zero_step(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{slice-C2: step is not 0, got 0}}
  %0 = "metadef.slice"(%a) {dim = 1 : i64, start = "0", step = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @past_the_end(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{slice-C3: the range lies within x, got index 8 of dim 1 = 8}}
  %0 = "metadef.slice"(%a) {dim = 1 : i64, start = "5", step = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @before_the_start(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{slice-C3: the range lies within x, got index -1 of dim 1 = 8}}
  %0 = "metadef.slice"(%a) {dim = 1 : i64, start = "2", step = -1 : i64} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @past_a_symbolic_end(%a: tensor<?xf32, #metadef.dims<["S"]>>) {
  // expected-error @+1 {{slice-C3: the range lies within x, got index S of dim 0 = S}}
  %0 = "metadef.slice"(%a) {dim = 0 : i64, start = "S", step = 1 : i64} : (tensor<?xf32, #metadef.dims<["S"]>>) -> tensor<1xf32>
  return
}

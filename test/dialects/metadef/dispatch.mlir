// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.dispatch"({{.*}}) {kernel = @k0
// CHECK-SAME: : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?xi64, #metadef.dims<["B"]>>)
func.func @round_trip(%a: tensor<?x8xf32, #metadef.dims<["B", 8]>>, %b: tensor<8xf32>) {
  %0:2 = "metadef.dispatch"(%a, %b) {kernel = @k0, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?xi64, #metadef.dims<["B"]>>)
  return
}

// -----

func.func @empty_name(%a: tensor<8xf32>) {
  // expected-error @+1 {{dispatch-C1: kernel refers to a function by name, got ''}}
  %0 = "metadef.dispatch"(%a) {kernel = @"", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @kernel_is_a_string(%a: tensor<8xf32>) {
  // expected-error @+1 {{attribute 'kernel' must be a symbol reference, got "k0"}}
  %0 = "metadef.dispatch"(%a) {kernel = "k0", operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

// CHECK-LABEL: @sizes_of_a_kernel
// CHECK: "metadef.dispatch"({{.*}}) {kernel = @k0, {{.*}}sizes = {n0 = 8 : i64}}
func.func @sizes_of_a_kernel(%a: tensor<8xf32>) {
  %0 = "metadef.dispatch"(%a) {kernel = @k0, sizes = {n0 = 8 : i64}, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @sizes_are_integers(%a: tensor<8xf32>) {
  // expected-error @+1 {{dispatch-C2: sizes, if given, has an integer of at least 0 for each symbol, got {n0 = "8"}}}
  %0 = "metadef.dispatch"(%a) {kernel = @k0, sizes = {n0 = "8"}, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return
}

// RUN: metadef-opt %s --pass-pipeline='builtin.module(form-kernels,outline-kernels)' --split-input-file | filecheck %s

// CHECK: func.func private @exp_0
// CHECK-SAME: attributes {metadef.kernel}
// CHECK-NOT: func.func private
// CHECK: func.func @main
// CHECK: kernel = @exp_0
// CHECK: metadef.reshape
// CHECK: kernel = @exp_0
func.func @main(%x: tensor<?x?xf32, #metadef.dims<["B", "B"]>>) -> tensor<?x?xf32, #metadef.dims<["B", "B"]>> {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x?xf32, #metadef.dims<["B", "B"]>>) -> tensor<?x?xf32, #metadef.dims<["B", "B"]>>
  %1 = "metadef.reshape"(%0) : (tensor<?x?xf32, #metadef.dims<["B", "B"]>>) -> tensor<?x?x1xf32, #metadef.dims<["B", "B", 1]>>
  %2 = "metadef.reshape"(%1) : (tensor<?x?x1xf32, #metadef.dims<["B", "B", 1]>>) -> tensor<?x?xf32, #metadef.dims<["B", "B"]>>
  %3 = "metadef.pointwise"(%2) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x?xf32, #metadef.dims<["B", "B"]>>) -> tensor<?x?xf32, #metadef.dims<["B", "B"]>>
  return %3 : tensor<?x?xf32, #metadef.dims<["B", "B"]>>
}

// -----


// Kernels over different symbols are different.
// CHECK: func.func private @exp_0
// CHECK: func.func private @exp_1
func.func @main(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>, %y: tensor<?x4xf32, #metadef.dims<["S", 4]>>) -> (tensor<?x4xf32, #metadef.dims<["B", 4]>>, tensor<?x4xf32, #metadef.dims<["S", 4]>>) {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  %1 = "metadef.pointwise"(%y) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x4xf32, #metadef.dims<["S", 4]>>) -> tensor<?x4xf32, #metadef.dims<["S", 4]>>
  return %0, %1 : tensor<?x4xf32, #metadef.dims<["B", 4]>>, tensor<?x4xf32, #metadef.dims<["S", 4]>>
}

// -----


// CHECK: func.func private @exp_0
// CHECK: func.func private @contraction_0
// CHECK: func.func @init() -> tensor<4x8xf32> attributes {metadef.results = ["init.0"]}
// CHECK: name = "w"
// CHECK: kernel = @exp_0
// CHECK: func.func @main
// CHECK: name = "init.0"
// CHECK: kernel = @contraction_0
func.func @main(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4x8xf32>
  %0 = "metadef.pointwise"(%w) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.contraction"(%x, %0) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>, tensor<4x8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return %1 : tensor<?x8xf32, #metadef.dims<["B", 8]>>
}

// -----


// A result of @main is made by @main.
// CHECK-NOT: @init
// CHECK: func.func @main
func.func @main() -> tensor<4x8xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4x8xf32>
  %0 = "metadef.pointwise"(%w) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// What runs once is one kernel for many sizes: a window stays, and so does the dim of a panel.
// CHECK: func.func private @transpose_0(%{{.*}}: tensor<?x16x?x3xf32, #metadef.dims<["n0", 16, "n1", 3]>>) -> tensor<?x3x?x16xf32, #metadef.dims<["n0", 3, "n1", 16]>>
// CHECK-NOT: func.func private @transpose
// CHECK: func.func @init()
// CHECK: kernel = @transpose_0, {{.*}}sizes = {n0 = 4 : i64, n1 = 64 : i64}
// CHECK: kernel = @transpose_0, {{.*}}sizes = {n0 = 2 : i64, n1 = 9 : i64}
// CHECK: func.func @main
func.func @main(%x: tensor<1xf32>) -> (tensor<4x3x64x16xf32>, tensor<2x3x9x16xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<4x16x64x3xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<2x16x9x3xf32>
  %0 = "metadef.transpose"(%v) {perm = array<i64: 0, 3, 2, 1>} : (tensor<4x16x64x3xf32>) -> tensor<4x3x64x16xf32>
  %1 = "metadef.transpose"(%w) {perm = array<i64: 0, 3, 2, 1>} : (tensor<2x16x9x3xf32>) -> tensor<2x3x9x16xf32>
  %2 = "metadef.pointwise"(%0, %x) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x3x64x16xf32>, tensor<1xf32>) -> tensor<4x3x64x16xf32>
  %3 = "metadef.pointwise"(%1, %x) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x3x9x16xf32>, tensor<1xf32>) -> tensor<2x3x9x16xf32>
  return %2, %3 : tensor<4x3x64x16xf32>, tensor<2x3x9x16xf32>
}

// -----

// Operands of lower rank have the symbols of the last dims.
// CHECK: func.func private @mul_0(%{{.*}}: tensor<?x?xf32, #metadef.dims<["n0", "n1"]>>, %{{.*}}: tensor<?xf32, #metadef.dims<["n1"]>>) -> tensor<?x?xf32, #metadef.dims<["n0", "n1"]>>
// CHECK: func.func @init()
// CHECK: sizes = {n0 = 24 : i64, n1 = 40 : i64}
func.func @main(%x: tensor<1xf32>) -> tensor<24x40xf32> {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<24x40xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<40xf32>
  %0 = "metadef.pointwise"(%v, %w) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<24x40xf32>, tensor<40xf32>) -> tensor<24x40xf32>
  %1 = "metadef.pointwise"(%0, %x) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<24x40xf32>, tensor<1xf32>) -> tensor<24x40xf32>
  return %1 : tensor<24x40xf32>
}

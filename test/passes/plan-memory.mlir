// RUN: metadef-opt %s --pass-pipeline='builtin.module(form-kernels,outline-kernels,plan-memory)' --split-input-file | filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-SAME: metadef.arena = "256*B", metadef.arena_before = "384*B"
// CHECK: offsets = ["0"]
// CHECK: offsets = ["128*B"]
// CHECK: offsets = ["0"]
// CHECK: offsets = ["output"]
func.func @main(%x: tensor<?x32xf32, #metadef.dims<["B", 32]>>, %w: tensor<32x32xf32>) -> tensor<?x32xf32, #metadef.dims<["B", 32]>> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x32xf32, #metadef.dims<["B", 32]>>, tensor<32x32xf32>) -> tensor<?x32xf32, #metadef.dims<["B", 32]>>
  %1 = "metadef.contraction"(%0, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x32xf32, #metadef.dims<["B", 32]>>, tensor<32x32xf32>) -> tensor<?x32xf32, #metadef.dims<["B", 32]>>
  %2 = "metadef.contraction"(%1, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x32xf32, #metadef.dims<["B", 32]>>, tensor<32x32xf32>) -> tensor<?x32xf32, #metadef.dims<["B", 32]>>
  %3 = "metadef.contraction"(%2, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x32xf32, #metadef.dims<["B", 32]>>, tensor<32x32xf32>) -> tensor<?x32xf32, #metadef.dims<["B", 32]>>
  return %3 : tensor<?x32xf32, #metadef.dims<["B", 32]>>
}

// -----


// The reshape lengthens the life of its source, and the result under it is the output.
// CHECK: func.func private @contraction_0
// CHECK-SAME: metadef.noalias
// CHECK-LABEL: func.func @main
// CHECK-SAME: metadef.arena = "128"
// CHECK: kernel = @contraction_0, offsets = ["0"]
// CHECK: offsets = ["output"]
func.func @main(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<16xf32> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = "metadef.reshape"(%0) : (tensor<4x4xf32>) -> tensor<2x8xf32>
  %2 = "metadef.softmax"(%1) {dim = 1 : i64, log = false} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %3 = "metadef.softmax"(%2) {dim = 1 : i64, log = false} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = "metadef.reshape"(%3) : (tensor<2x8xf32>) -> tensor<16xf32>
  return %4 : tensor<16xf32>
}

// -----


// CHECK: func.func private @add_0
// CHECK-SAME: attributes {metadef.kernel}
// CHECK-LABEL: func.func @main
// CHECK-SAME: metadef.arena = "128"
// CHECK: kernel = @softmax_0, offsets = ["0"]
// CHECK: kernel = @softmax_0, offsets = ["64"]
// CHECK: kernel = @add_0, offsets = ["0"]
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "metadef.softmax"(%x) {dim = 1 : i64, log = false} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "metadef.softmax"(%0) {dim = 1 : i64, log = false} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %a = "metadef.reshape"(%0) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %b = "metadef.reshape"(%1) : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %2 = "metadef.pointwise"(%a, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %c = "metadef.reshape"(%2) : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %3 = "metadef.softmax"(%c) {dim = 1 : i64, log = false} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// RUN: metadef-opt %s --pass-pipeline='builtin.module(form-kernels)' | filecheck %s

// CHECK-LABEL: @fuses_epilogue
// CHECK: "metadef.kernel"(%arg0, %arg1, %arg2)
// CHECK: metadef.contraction
// CHECK-NEXT: fn = "add"
// CHECK-NEXT: fn = "sigmoid"
// CHECK-NEXT: fn = "mul"
// CHECK-NEXT: metadef.yield
// CHECK-NOT: metadef.kernel
func.func @fuses_epilogue(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>, tensor<4x8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %1 = "metadef.pointwise"(%0, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %2 = "metadef.pointwise"(%1) {fn = "sigmoid", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %3 = "metadef.pointwise"(%1, %2) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>, tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return %3 : tensor<?x8xf32, #metadef.dims<["B", 8]>>
}

// CHECK-LABEL: @does_not_fuse_across_two_uses
// CHECK: metadef.contraction
// CHECK-NEXT: metadef.yield
// CHECK: metadef.kernel
// CHECK: fn = "relu"
func.func @does_not_fuse_across_two_uses(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = "metadef.pointwise"(%0) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<2x8xf32>
}

// CHECK-LABEL: @sum_before_norm_is_a_second_result
// CHECK: %{{.*}}:2 = "metadef.kernel"
// CHECK: fn = "add"
// CHECK-NEXT: metadef.norm
// CHECK-NEXT: "metadef.yield"(%{{.*}}, %{{.*}})
func.func @sum_before_norm_is_a_second_result(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = "metadef.pointwise"(%x, %y) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "metadef.norm"(%0) {kind = "rms", axes = 1 : i64, eps = 1.0e-5 : f64, operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}

// The softmax stands between the two: one kernel of exp and add would be a cycle.
// CHECK-LABEL: @groups_are_convex
// CHECK: fn = "exp"
// CHECK-NEXT: metadef.softmax
// CHECK-NEXT: fn = "add"
// CHECK-NEXT: metadef.yield
// CHECK-NOT: metadef.kernel
func.func @groups_are_convex(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "metadef.softmax"(%0) {dim = 1 : i64, log = false} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "metadef.pointwise"(%0, %1) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}

// CHECK-LABEL: @does_not_mix_weights_with_inputs
// CHECK: metadef.kernel
// CHECK: fn = "exp"
// CHECK-NEXT: metadef.yield
// CHECK: metadef.kernel
// CHECK: fn = "mul"
func.func @does_not_mix_weights_with_inputs(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<2x4xf32>
  %0 = "metadef.pointwise"(%w) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "metadef.pointwise"(%x, %0) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// CHECK-LABEL: @constants_are_copied_into_kernels
// CHECK-NEXT: "metadef.kernel"(%arg0)
// CHECK: metadef.fill
// CHECK: fn = "mul"
func.func @constants_are_copied_into_kernels(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = "metadef.fill"() {value = 2.0 : f32} : () -> tensor<f32>
  %0 = "metadef.pointwise"(%x, %c) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @results_are_buffers_of_their_own
// CHECK: fn = "identity"
func.func @results_are_buffers_of_their_own(%x: tensor<2x4xf32>) -> tensor<8xf32> {
  %0 = "metadef.reshape"(%x) : (tensor<2x4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: @reshape_stays_between_kernels
// CHECK: metadef.kernel
// CHECK: %[[R:.*]] = "metadef.reshape"
// CHECK-NEXT: "metadef.kernel"(%[[R]])
func.func @reshape_stays_between_kernels(%x: tensor<2x4xf32>, %w: tensor<4x8xf32>) -> tensor<16x1xf32> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
  %1 = "metadef.reshape"(%0) : (tensor<2x8xf32>) -> tensor<16x1xf32>
  %2 = "metadef.softmax"(%1) {dim = 1 : i64, log = false} : (tensor<16x1xf32>) -> tensor<16x1xf32>
  return %2 : tensor<16x1xf32>
}

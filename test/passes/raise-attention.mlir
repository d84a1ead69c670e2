// RUN: metadef-opt %s --pass-pipeline='builtin.module(raise-attention,eliminate-dead-code)' | filecheck %s

// CHECK-LABEL: @raises_scaled_scores
// CHECK-NEXT: "metadef.attention"(%arg0, %arg1, %arg2) {causal = false, safe = false, scale = 1.250000e-01 : f64}
// CHECK-NEXT: return
func.func @raises_scaled_scores(%q: tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "L", 64]>>, %k: tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "S", 64]>>, %v: tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "S", 64]>>) -> tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "L", 64]>> {
  %c = "metadef.fill"() {value = 8.0 : f32} : () -> tensor<f32>
  %0 = "metadef.transpose"(%k) {perm = array<i64: 0, 1, 3, 2>} : (tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "S", 64]>>) -> tensor<?x4x64x?xf32, #metadef.dims<["B", 4, 64, "S"]>>
  %1 = "metadef.contraction"(%q, %0) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "L", 64]>>, tensor<?x4x64x?xf32, #metadef.dims<["B", 4, 64, "S"]>>) -> tensor<?x4x?x?xf32, #metadef.dims<["B", 4, "L", "S"]>>
  %2 = "metadef.pointwise"(%1, %c) {fn = "div", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x4x?x?xf32, #metadef.dims<["B", 4, "L", "S"]>>, tensor<f32>) -> tensor<?x4x?x?xf32, #metadef.dims<["B", 4, "L", "S"]>>
  %3 = "metadef.softmax"(%2) {dim = 3 : i64, log = false} : (tensor<?x4x?x?xf32, #metadef.dims<["B", 4, "L", "S"]>>) -> tensor<?x4x?x?xf32, #metadef.dims<["B", 4, "L", "S"]>>
  %4 = "metadef.contraction"(%3, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x4x?x?xf32, #metadef.dims<["B", 4, "L", "S"]>>, tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "S", 64]>>) -> tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "L", 64]>>
  return %4 : tensor<?x4x?x64xf32, #metadef.dims<["B", 4, "L", 64]>>
}

// An added mask is the mask; keys need no transpose when the product says so.
// CHECK-LABEL: @raises_added_mask
// CHECK-NEXT: "metadef.attention"(%arg0, %arg1, %arg2, %arg3) {causal = false, safe = false, scale = 1.000000e+00 : f64}
// CHECK-NEXT: return
func.func @raises_added_mask(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x3xf32>, %mask: tensor<5x6xf32>) -> tensor<4x5x3xf32> {
  %0 = "metadef.contraction"(%q, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<4x5x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x6xf32>
  %1 = "metadef.pointwise"(%mask, %0) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<5x6xf32>, tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %2 = "metadef.softmax"(%1) {dim = 2 : i64, log = false} : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %3 = "metadef.contraction"(%2, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x5x6xf32>, tensor<4x6x3xf32>) -> tensor<4x5x3xf32>
  return %3 : tensor<4x5x3xf32>
}

// masked_fill(scores, dropped, -inf)
// CHECK-LABEL: @raises_dropped_scores
// CHECK-NEXT: %[[KEPT:.*]] = "metadef.pointwise"(%arg3) {fn = "not"
// CHECK-NEXT: "metadef.attention"(%arg0, %arg1, %arg2, %[[KEPT]]) {causal = false, safe = false
// CHECK-NEXT: return
func.func @raises_dropped_scores(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x3xf32>, %dropped: tensor<5x6xi1>) -> tensor<4x5x3xf32> {
  %c = "metadef.fill"() {value = 0xFF800000 : f32} : () -> tensor<f32>
  %0 = "metadef.contraction"(%q, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<4x5x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x6xf32>
  %1 = "metadef.pointwise"(%dropped, %c, %0) {fn = "select", operandSegmentSizes = array<i32: 1, 1, 1>} : (tensor<5x6xi1>, tensor<f32>, tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %2 = "metadef.softmax"(%1) {dim = 2 : i64, log = false} : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %3 = "metadef.contraction"(%2, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x5x6xf32>, tensor<4x6x3xf32>) -> tensor<4x5x3xf32>
  return %3 : tensor<4x5x3xf32>
}

// What is read besides must be made: there is no attention that returns its weights.
// CHECK-LABEL: @keeps_weights_that_are_returned
// CHECK-NOT: metadef.attention
// CHECK: return
func.func @keeps_weights_that_are_returned(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x3xf32>) -> (tensor<4x5x3xf32>, tensor<4x5x6xf32>) {
  %0 = "metadef.contraction"(%q, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<4x5x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x6xf32>
  %1 = "metadef.softmax"(%0) {dim = 2 : i64, log = false} : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %2 = "metadef.contraction"(%1, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x5x6xf32>, tensor<4x6x3xf32>) -> tensor<4x5x3xf32>
  return %2, %1 : tensor<4x5x3xf32>, tensor<4x5x6xf32>
}

// CHECK-LABEL: @keeps_softmax_over_rows
// CHECK-NOT: metadef.attention
// CHECK: return
func.func @keeps_softmax_over_rows(%q: tensor<4x6x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x3xf32>) -> tensor<4x6x3xf32> {
  %0 = "metadef.contraction"(%q, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x6xf32>
  %1 = "metadef.softmax"(%0) {dim = 1 : i64, log = false} : (tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %2 = "metadef.contraction"(%1, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x6x6xf32>, tensor<4x6x3xf32>) -> tensor<4x6x3xf32>
  return %2 : tensor<4x6x3xf32>
}

// Scaled after the mask: the mask would be scaled too.
// CHECK-LABEL: @keeps_scaled_mask
// CHECK-NOT: metadef.attention
// CHECK: return
func.func @keeps_scaled_mask(%q: tensor<4x5x8xf32>, %k: tensor<4x6x8xf32>, %v: tensor<4x6x3xf32>, %mask: tensor<5x6xf32>) -> tensor<4x5x3xf32> {
  %c = "metadef.fill"() {value = 0.5 : f32} : () -> tensor<f32>
  %0 = "metadef.contraction"(%q, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<4x5x8xf32>, tensor<4x6x8xf32>) -> tensor<4x5x6xf32>
  %1 = "metadef.pointwise"(%0, %mask) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x5x6xf32>, tensor<5x6xf32>) -> tensor<4x5x6xf32>
  %2 = "metadef.pointwise"(%1, %c) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x5x6xf32>, tensor<f32>) -> tensor<4x5x6xf32>
  %3 = "metadef.softmax"(%2) {dim = 2 : i64, log = false} : (tensor<4x5x6xf32>) -> tensor<4x5x6xf32>
  %4 = "metadef.contraction"(%3, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x5x6xf32>, tensor<4x6x3xf32>) -> tensor<4x5x3xf32>
  return %4 : tensor<4x5x3xf32>
}

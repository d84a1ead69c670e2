// RUN: metadef-opt %s --pass-pipeline='builtin.module(eliminate-dead-code)' | filecheck %s

// CHECK-LABEL: @erases_unused_chain
// CHECK-NEXT: return %{{.*}} : tensor<4xf32>
func.func @erases_unused_chain(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "metadef.weight"() {name = "w"} : () -> tensor<4xf32>
  %1 = "metadef.pointwise"(%x, %0) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "metadef.softmax"(%1) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<4xf32>
  return %x : tensor<4xf32>
}

// CHECK-LABEL: @keeps_used
// CHECK: metadef.weight
// CHECK: metadef.softmax
func.func @keeps_used() -> tensor<4xf32> {
  %0 = "metadef.weight"() {name = "w"} : () -> tensor<4xf32>
  %1 = "metadef.softmax"(%0) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @keeps_op_with_one_used_result
// CHECK: metadef.sort
func.func @keeps_op_with_one_used_result(%x: tensor<4xf32>) -> tensor<4xi64> {
  %0:2 = "metadef.sort"(%x) {dim = 0 : i64, descending = false, stable = true} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  return %0#1 : tensor<4xi64>
}

// CHECK-LABEL: @keeps_effects
// CHECK: memref.store
func.func @keeps_effects(%m: memref<f32>, %v: f32) {
  memref.store %v, %m[] : memref<f32>
  return
}

// CHECK-LABEL: @erases_dead_kernel
// CHECK-NEXT: return
func.func @erases_dead_kernel(%x: tensor<4xf32>) {
  %0 = "metadef.kernel"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    "metadef.yield"(%a) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// The second result is unused: its op in the region, the argument that only it read, and the
// weight behind that argument go.
// CHECK-LABEL: @trims_kernel
// CHECK-NOT: metadef.weight
// CHECK: "metadef.kernel"(%{{[a-z0-9]+}})
// CHECK-NEXT: ^{{.*}}(%[[A:.*]]: tensor<4xf32>):
// CHECK-NEXT: %[[E:.*]] = "metadef.pointwise"(%[[A]]) {fn = "exp"
// CHECK-NEXT: "metadef.yield"(%[[E]])
// CHECK: ["model", 3]
func.func @trims_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4xf32>
  %0:2 = "metadef.kernel"(%x, %w) ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = "metadef.pointwise"(%a) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "metadef.pointwise"(%b) {fn = "log", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
    "metadef.yield"(%1, %2) {operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> ()
  }) {note = ["model", 3], operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}

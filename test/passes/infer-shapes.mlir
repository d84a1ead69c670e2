// RUN: metadef-opt %s --pass-pipeline='builtin.module(infer-shapes)' --split-input-file | filecheck %s

// CHECK-LABEL: func.func @refines_to_operands
// CHECK-SAME: -> tensor<4x8xf32>
// CHECK: metadef.softmax
// CHECK-SAME: -> tensor<4x8xf32>
// CHECK: metadef.pointwise
// CHECK-SAME: -> tensor<4x8xf32>
func.func @refines_to_operands(%x: tensor<4x8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>> {
  %0 = "metadef.softmax"(%x) {dim = 1 : i64, log = false} : (tensor<4x8xf32>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  %1 = "metadef.pointwise"(%0) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<?x8xf32, #metadef.dims<["B", 8]>>
  return %1 : tensor<?x8xf32, #metadef.dims<["B", 8]>>
}

// -----

// A static dim that only the declared type knows stays.
// CHECK-LABEL: func.func @keeps_better_known
// CHECK: metadef.softmax
// CHECK-SAME: -> tensor<4x8xf32>
func.func @keeps_better_known(%x: tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<4x8xf32> {
  %0 = "metadef.softmax"(%x) {dim = 1 : i64, log = false} : (tensor<?x8xf32, #metadef.dims<["B", 8]>>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @goes_into_kernels
// CHECK: ^{{.*}}(%{{.*}}: tensor<4xf32>):
// CHECK: metadef.pointwise
// CHECK-SAME: -> tensor<4xf32>
// CHECK: (tensor<4xf32>) -> tensor<4xf32>
// CHECK: return %{{.*}} : tensor<4xf32>
func.func @goes_into_kernels(%x: tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["B"]>> {
  %s = "metadef.softmax"(%x) {dim = 0 : i64, log = false} : (tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["B"]>>
  %0 = "metadef.kernel"(%s) ({
  ^bb0(%a: tensor<?xf32, #metadef.dims<["B"]>>):
    %1 = "metadef.pointwise"(%a) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?xf32, #metadef.dims<["B"]>>) -> tensor<?xf32, #metadef.dims<["B"]>>
    "metadef.yield"(%1) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #metadef.dims<["B"]>>) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?xf32, #metadef.dims<["B"]>>) -> tensor<?xf32, #metadef.dims<["B"]>>
  return %0 : tensor<?xf32, #metadef.dims<["B"]>>
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.transpose"({{.*}}) {perm = array<i64: 2, 0, 1>
// CHECK-SAME: : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<8x?x?xf32, #metadef.dims<[8, "B", "S"]>>
func.func @round_trip(%a: tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) {
  %0 = "metadef.transpose"(%a) {perm = array<i64: 2, 0, 1>} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<8x?x?xf32, #metadef.dims<[8, "B", "S"]>>
  return
}

// -----

func.func @not_a_permutation(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{transpose-C1: perm is a permutation of x's axes, got perm [0, 0] of rank 2}}
  %0 = "metadef.transpose"(%a) {perm = array<i64: 0, 0>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @wrong_result(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{transpose-result: the result type follows from the operands, got dim 0 = 4 where 8 follows}}
  %0 = "metadef.transpose"(%a) {perm = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

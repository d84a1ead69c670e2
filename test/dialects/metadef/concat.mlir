// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.concat"({{.*}}) {dim = 1 : i64
// CHECK-SAME: : (tensor<?x3xf32, #metadef.dims<["B", 3]>>, tensor<?x?xf32, #metadef.dims<["B", "S"]>>) -> tensor<?x?xf32, #metadef.dims<["B", "S + 3"]>>
func.func @round_trip(%a: tensor<?x3xf32, #metadef.dims<["B", 3]>>, %b: tensor<?x?xf32, #metadef.dims<["B", "S"]>>) {
  %0 = "metadef.concat"(%a, %b) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x3xf32, #metadef.dims<["B", 3]>>, tensor<?x?xf32, #metadef.dims<["B", "S"]>>) -> tensor<?x?xf32, #metadef.dims<["B", "S + 3"]>>
  return
}

// -----

func.func @dim_out_of_range(%a: tensor<4x8xf32>) {
  // expected-error @+1 {{concat-C1: dim is an axis of every operand, got dim 2 of rank 2}}
  %0 = "metadef.concat"(%a) {dim = 2 : i64, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @mixed_types(%a: tensor<4xf32>, %b: tensor<4xf16>) {
  // expected-error @+1 {{concat-C2: operands have one element type and rank, and one is there, got [4]xf32 and [4]xf16}}
  %0 = "metadef.concat"(%a, %b) {dim = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4xf32>, tensor<4xf16>) -> tensor<8xf32>
  return
}

// -----

func.func @nothing() {
  // expected-error @+1 {{concat-C2: operands have one element type and rank, and one is there, got no operand}}
  %0 = "metadef.concat"() {dim = 0 : i64, operandSegmentSizes = array<i32: 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : () -> tensor<8xf32>
  return
}

// -----

func.func @other_dims_differ(%a: tensor<4x8xf32>, %b: tensor<5x8xf32>) {
  // expected-error @+1 {{concat-C3: other dims agree, got [4, 8]xf32 and [5, 8]xf32}}
  %0 = "metadef.concat"(%a, %b) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x16xf32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.contraction"({{.*}}) {transpose_lhs = false, transpose_rhs = false
// CHECK-SAME: : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, tensor<8x16xf32>) -> tensor<?x?x16xf32, #metadef.dims<["B", "S", 16]>>
func.func @round_trip(%a: tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, %b: tensor<8x16xf32>) {
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, tensor<8x16xf32>) -> tensor<?x?x16xf32, #metadef.dims<["B", "S", 16]>>
  return
}

// CHECK-LABEL: @transposed
// CHECK: "metadef.contraction"({{.*}}) {transpose_lhs = true, transpose_rhs = true
// CHECK-SAME: : (tensor<8x4xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
func.func @transposed(%a: tensor<8x4xf32>, %b: tensor<16x8xf32>) {
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = true, transpose_rhs = true} : (tensor<8x4xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  return
}

// CHECK-LABEL: @batches_broadcast
// CHECK: "metadef.contraction"({{.*}}) {transpose_lhs = false, transpose_rhs = false
// CHECK-SAME: : (tensor<2x1x4x8xf32>, tensor<3x8x5xf32>) -> tensor<2x3x4x5xf32>
func.func @batches_broadcast(%a: tensor<2x1x4x8xf32>, %b: tensor<3x8x5xf32>) {
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x1x4x8xf32>, tensor<3x8x5xf32>) -> tensor<2x3x4x5xf32>
  return
}

// CHECK-LABEL: @narrow_weights
// CHECK: "metadef.contraction"({{.*}}) {transpose_lhs = false, transpose_rhs = false
// CHECK-SAME: : (tensor<4x8xf32>, tensor<8x5xbf16>) -> tensor<4x5xf32>
// CHECK: (tensor<4x8xf32>, tensor<8x5xi8>) -> tensor<4x5xf32>
func.func @narrow_weights(%a: tensor<4x8xf32>, %b: tensor<8x5xbf16>, %c: tensor<8x5xi8>) {
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x8xf32>, tensor<8x5xbf16>) -> tensor<4x5xf32>
  %1 = "metadef.contraction"(%a, %c) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x8xf32>, tensor<8x5xi8>) -> tensor<4x5xf32>
  return
}

// -----

func.func @of_vectors(%a: tensor<8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @+1 {{contraction-C1: operands have rank 2 or more, got [8]xf32 and [8, 4]xf32}}
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<8xf32>, tensor<8x4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @contracted_dims_differ(%a: tensor<4x8xf32>, %b: tensor<7x5xf32>) {
  // expected-error @+1 {{contraction-C2: contracted dims agree, got K=8 in [4, 8]xf32 and K=7 in [7, 5]xf32}}
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x8xf32>, tensor<7x5xf32>) -> tensor<4x5xf32>
  return
}

// -----

func.func @batches_differ(%a: tensor<2x4x8xf32>, %b: tensor<3x8x5xf32>) {
  // expected-error @+1 {{contraction-C3: batch dims broadcast, got [2, 4, 8]xf32 and [3, 8, 5]xf32}}
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x4x8xf32>, tensor<3x8x5xf32>) -> tensor<2x4x5xf32>
  return
}

// -----

func.func @mixed_types(%a: tensor<4x8xf16>, %b: tensor<8x5xf32>) {
  // expected-error @+1 {{contraction-C4: operands have one element type, or lhs has f32 and rhs bf16, f16 or i8, got f16 and f32}}
  %0 = "metadef.contraction"(%a, %b) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x8xf16>, tensor<8x5xf32>) -> tensor<4x5xf16>
  return
}

// RUN: metadef-opt %s --pass-pipeline='builtin.module(fold-constants,eliminate-dead-code)' | filecheck %s

// CHECK-LABEL: @computes_constants
// CHECK: %[[C:.*]] = "metadef.fill"() {value = 1.200000e+01 : f32}
// CHECK: "metadef.pointwise"(%arg0, %[[C]])
func.func @computes_constants(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "metadef.dim"() {expr = "12"} : () -> tensor<i64>
  %1 = "metadef.pointwise"(%0) {fn = "cast", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<i64>) -> tensor<f32>
  %2 = "metadef.pointwise"(%x, %1) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: @keeps_symbolic_dim
// CHECK: metadef.dim
// CHECK: fn = "cast"
func.func @keeps_symbolic_dim() -> tensor<f32> {
  %0 = "metadef.dim"() {expr = "B"} : () -> tensor<i64>
  %1 = "metadef.pointwise"(%0) {fn = "cast", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<i64>) -> tensor<f32>
  return %1 : tensor<f32>
}

// CHECK-LABEL: @keeps_large_results
// CHECK: fn = "add"
func.func @keeps_large_results() -> tensor<2048xf32> {
  %0 = "metadef.iota"() {dim = 0 : i64, start = 0.0 : f32, step = 1.0 : f32} : () -> tensor<2048xf32>
  %1 = "metadef.pointwise"(%0, %0) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<2048xf32>, tensor<2048xf32>) -> tensor<2048xf32>
  return %1 : tensor<2048xf32>
}

// CHECK-LABEL: @leaves_weights_to_init
// CHECK: fn = "add"
func.func @leaves_weights_to_init() -> tensor<4xf32> {
  %0 = "metadef.weight"() {name = "w"} : () -> tensor<4xf32>
  %1 = "metadef.pointwise"(%0, %0) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @drops_identities
// CHECK-NOT: {{metadef.(pointwise|concat|slice)}}
// CHECK: return %arg0
func.func @drops_identities(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>> {
  %one = "metadef.fill"() {value = 1.0 : f32} : () -> tensor<f32>
  %zero = "metadef.fill"() {value = 0.0 : f32} : () -> tensor<f32>
  %0 = "metadef.pointwise"(%one, %x) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<f32>, tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  %1 = "metadef.pointwise"(%0, %zero) {fn = "sub", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>, tensor<f32>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  %2 = "metadef.pointwise"(%1) {fn = "cast", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  %3 = "metadef.slice"(%2) {dim = 1 : i64, start = "0", step = 1 : i64} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  return %3 : tensor<?x4xf32, #metadef.dims<["B", 4]>>
}

// x + 0.0 turns -0.0 into 0.0.
// CHECK-LABEL: @keeps_add_of_zero
// CHECK: fn = "add"
func.func @keeps_add_of_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = "metadef.fill"() {value = 0.0 : f32} : () -> tensor<f32>
  %0 = "metadef.pointwise"(%x, %zero) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @keeps_operand_that_broadcasts
// CHECK: fn = "mul"
func.func @keeps_operand_that_broadcasts(%x: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %one = "metadef.fill"() {value = 1.0 : f32} : () -> tensor<3x4xf32>
  %0 = "metadef.pointwise"(%x, %one) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: @composes_views
// CHECK-NEXT: %[[T:.*]] = "metadef.transpose"(%arg0) {perm = array<i64: 2, 1, 0>}
// CHECK: return %{{.*}} : tensor<5x3x2xf32>, tensor<3x2x1xf32>
func.func @composes_views(%x: tensor<2x3x5xf32>, %y: tensor<1x3x2xf32>) -> (tensor<5x3x2xf32>, tensor<3x2x1xf32>) {
  %0 = "metadef.transpose"(%x) {perm = array<i64: 1, 2, 0>} : (tensor<2x3x5xf32>) -> tensor<3x5x2xf32>
  %1 = "metadef.transpose"(%0) {perm = array<i64: 1, 0, 2>} : (tensor<3x5x2xf32>) -> tensor<5x3x2xf32>
  %2 = "metadef.transpose"(%y) {perm = array<i64: 1, 2, 0>} : (tensor<1x3x2xf32>) -> tensor<3x2x1xf32>
  return %1, %2 : tensor<5x3x2xf32>, tensor<3x2x1xf32>
}

// CHECK-LABEL: @transposes_of_ones_are_reshapes
// CHECK-NEXT: "metadef.reshape"(%arg0)
// CHECK-NOT: metadef.transpose
func.func @transposes_of_ones_are_reshapes(%x: tensor<1x3x2xf32>) -> tensor<3x2x1xf32> {
  %0 = "metadef.transpose"(%x) {perm = array<i64: 1, 2, 0>} : (tensor<1x3x2xf32>) -> tensor<3x2x1xf32>
  return %0 : tensor<3x2x1xf32>
}

// B may be larger than 1.
// CHECK-LABEL: @keeps_transpose_of_unknown_dim
// CHECK: metadef.transpose
func.func @keeps_transpose_of_unknown_dim(%x: tensor<?x3x2xf32, #metadef.dims<["B", 3, 2]>>) -> tensor<3x2x?xf32, #metadef.dims<[3, 2, "B"]>> {
  %0 = "metadef.transpose"(%x) {perm = array<i64: 1, 2, 0>} : (tensor<?x3x2xf32, #metadef.dims<["B", 3, 2]>>) -> tensor<3x2x?xf32, #metadef.dims<[3, 2, "B"]>>
  return %0 : tensor<3x2x?xf32, #metadef.dims<[3, 2, "B"]>>
}

// CHECK-LABEL: @reads_part_of_concat
// CHECK-NOT: metadef.concat
// CHECK: return %arg1
func.func @reads_part_of_concat(%x: tensor<2x?xf32, #metadef.dims<[2, "B"]>>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = "metadef.concat"(%x, %y) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x?xf32, #metadef.dims<[2, "B"]>>, tensor<2x3xf32>) -> tensor<2x?xf32, #metadef.dims<[2, "B + 3"]>>
  %1 = "metadef.slice"(%0) {dim = 1 : i64, start = "B", step = 1 : i64} : (tensor<2x?xf32, #metadef.dims<[2, "B + 3"]>>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

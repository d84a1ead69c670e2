// RUN: metadef-opt %s --pass-pipeline='builtin.module(raise-norms,eliminate-dead-code)' | filecheck %s

// CHECK-LABEL: @raises_rms_norm
// CHECK-NEXT: "metadef.norm"(%arg0, %arg1) {axes = 1 : i64, {{.*}}kind = "rms"
// CHECK-NEXT: return
func.func @raises_rms_norm(%x: tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, %w: tensor<8xf32>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>> {
  %e = "metadef.fill"() {value = 1.0e-6 : f32} : () -> tensor<f32>
  %0 = "metadef.pointwise"(%x, %x) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  %1 = "metadef.reduce"(%0) {fn = "mean", dims = array<i64: 2>, keepdim = true} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x?x1xf32, #metadef.dims<["B", "S", 1]>>
  %2 = "metadef.pointwise"(%1, %e) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x?x1xf32, #metadef.dims<["B", "S", 1]>>, tensor<f32>) -> tensor<?x?x1xf32, #metadef.dims<["B", "S", 1]>>
  %3 = "metadef.pointwise"(%2) {fn = "rsqrt", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<?x?x1xf32, #metadef.dims<["B", "S", 1]>>) -> tensor<?x?x1xf32, #metadef.dims<["B", "S", 1]>>
  %4 = "metadef.pointwise"(%x, %3) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>, tensor<?x?x1xf32, #metadef.dims<["B", "S", 1]>>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  %5 = "metadef.pointwise"(%w, %4) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8xf32>, tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>) -> tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
  return %5 : tensor<?x?x8xf32, #metadef.dims<["B", "S", 8]>>
}

// CHECK-LABEL: @keeps_mean_over_another_axis
// CHECK-NOT: metadef.norm
// CHECK: fn = "rsqrt"
func.func @keeps_mean_over_another_axis(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = "metadef.fill"() {value = 1.0e-6 : f32} : () -> tensor<f32>
  %0 = "metadef.pointwise"(%x, %x) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.reduce"(%0) {fn = "mean", dims = array<i64: 0>, keepdim = true} : (tensor<4x8xf32>) -> tensor<1x8xf32>
  %2 = "metadef.pointwise"(%1, %e) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %3 = "metadef.pointwise"(%2) {fn = "rsqrt", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %4 = "metadef.pointwise"(%x, %3) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// CHECK-LABEL: @keeps_square_of_another_value
// CHECK-NOT: metadef.norm
// CHECK: fn = "rsqrt"
func.func @keeps_square_of_another_value(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = "metadef.fill"() {value = 1.0e-6 : f32} : () -> tensor<f32>
  %0 = "metadef.pointwise"(%y, %y) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.reduce"(%0) {fn = "mean", dims = array<i64: 1>, keepdim = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = "metadef.pointwise"(%1, %e) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %3 = "metadef.pointwise"(%2) {fn = "rsqrt", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = "metadef.pointwise"(%x, %3) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.resample"({{.*}}) {align_corners = false, mode = "linear", scales = array<f64: 2.000000e+00, 2.000000e+00>
// CHECK-SAME: : (tensor<?x4x8x8xf32, #metadef.dims<["B", 4, 8, 8]>>) -> tensor<?x4x16x16xf32, #metadef.dims<["B", 4, 16, 16]>>
func.func @round_trip(%a: tensor<?x4x8x8xf32, #metadef.dims<["B", 4, 8, 8]>>) {
  %0 = "metadef.resample"(%a) {align_corners = false, mode = "linear", scales = array<f64: 2.000000e+00, 2.000000e+00>} : (tensor<?x4x8x8xf32, #metadef.dims<["B", 4, 8, 8]>>) -> tensor<?x4x16x16xf32, #metadef.dims<["B", 4, 16, 16]>>
  return
}

// -----

func.func @of_a_matrix(%a: tensor<4x9xf32>) {
  // expected-error @+1 {{resample-C1: x has batch, channel and spatial dims}}
  %0 = "metadef.resample"(%a) {align_corners = false, mode = "linear", scales = array<f64: 2.000000e+00, 2.000000e+00>} : (tensor<4x9xf32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @one_scale(%a: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{resample-C2: scales and sizes have one entry a spatial dim, scales are positive}}
  %0 = "metadef.resample"(%a) {align_corners = false, mode = "linear", scales = array<f64: 2.0>} : (tensor<1x4x8x8xf32>) -> tensor<1x4x16x16xf32>
  return
}

// -----

func.func @cubic_of_one_dim(%a: tensor<1x4x8xf32>) {
  // expected-error @+1 {{resample-C3: cubic has two spatial dims}}
  %0 = "metadef.resample"(%a) {align_corners = false, mode = "cubic", scales = array<f64: 2.0>} : (tensor<1x4x8xf32>) -> tensor<1x4x16xf32>
  return
}

// -----

func.func @channels_change(%a: tensor<1x4x8x8xf32>) {
  // expected-error @+1 {{resample-result: the result type follows from the operands, got dim 1 = 5 where 4 follows}}
  %0 = "metadef.resample"(%a) {align_corners = false, mode = "linear", scales = array<f64: 2.000000e+00, 2.000000e+00>} : (tensor<1x4x8x8xf32>) -> tensor<1x5x16x16xf32>
  return
}

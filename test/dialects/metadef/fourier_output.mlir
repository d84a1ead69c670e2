// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.fourier_output"({{.*}}) {axis = 2 : i64, length = 16 : i64, size = 28 : i64, window = 7 : i64} : (tensor<23x?x14x3x8xf32, #metadef.dims<[23, "N", 14, 3, 8]>>) -> tensor<?x14x28x8xf32, #metadef.dims<["N", 14, 28, 8]>>
func.func @round_trip(%x: tensor<23x?x14x3x8xf32, #metadef.dims<[23, "N", 14, 3, 8]>>) {
  %0 = "metadef.fourier_output"(%x) {axis = 2 : i64, length = 16 : i64, window = 7 : i64, size = 28 : i64} : (tensor<23x?x14x3x8xf32, #metadef.dims<[23, "N", 14, 3, 8]>>) -> tensor<?x14x28x8xf32, #metadef.dims<["N", 14, 28, 8]>>
  return
}

// -----

func.func @no_such_axis(%x: tensor<23x1x14x3x8xf32>) {
  // expected-error @+1 {{fourier_output-C1: x is [P, N, H, W, C] of floats, axis 1 or 2, got}}
  %0 = "metadef.fourier_output"(%x) {axis = 3 : i64, length = 16 : i64, window = 7 : i64, size = 28 : i64} : (tensor<23x1x14x3x8xf32>) -> tensor<1x14x28x8xf32>
  return
}

// -----

func.func @no_power_of_two(%x: tensor<17x1x14x3x8xf32>) {
  // expected-error @+1 {{fourier_output-C2: length is one of 8, 16, 32, 64, got 12}}
  %0 = "metadef.fourier_output"(%x) {axis = 2 : i64, length = 12 : i64, window = 7 : i64, size = 18 : i64} : (tensor<17x1x14x3x8xf32>) -> tensor<1x14x18x8xf32>
  return
}

// -----

func.func @no_window(%x: tensor<23x1x14x3x8xf32>) {
  // expected-error @+1 {{fourier_output-C3: window is 1 to length, got 0 for 16}}
  %0 = "metadef.fourier_output"(%x) {axis = 2 : i64, length = 16 : i64, window = 0 : i64, size = 28 : i64} : (tensor<23x1x14x3x8xf32>) -> tensor<1x14x28x8xf32>
  return
}

// -----

func.func @too_few_points(%x: tensor<16x1x14x3x8xf32>) {
  // expected-error @+1 {{fourier_output-C4: P is 3 length / 2 - 1, got}}
  %0 = "metadef.fourier_output"(%x) {axis = 2 : i64, length = 16 : i64, window = 7 : i64, size = 28 : i64} : (tensor<16x1x14x3x8xf32>) -> tensor<1x14x28x8xf32>
  return
}

// -----

func.func @tiles_beyond_the_edge(%x: tensor<23x1x14x3x8xf32>) {
  // expected-error @+1 {{fourier_output-C5: the tiles just cover the size, 1 or more, got}}
  %0 = "metadef.fourier_output"(%x) {axis = 2 : i64, length = 16 : i64, window = 7 : i64, size = 20 : i64} : (tensor<23x1x14x3x8xf32>) -> tensor<1x14x20x8xf32>
  return
}

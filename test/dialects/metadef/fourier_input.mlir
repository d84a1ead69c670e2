// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.fourier_input"({{.*}}) {axis = 1 : i64, length = 16 : i64, padding = array<i64: 3, 3>, window = 7 : i64} : (tensor<?x28x7x8xf32, #metadef.dims<["N", 28, 7, 8]>>) -> tensor<23x?x3x7x8xf32, #metadef.dims<[23, "N", 3, 7, 8]>>
func.func @round_trip(%x: tensor<?x28x7x8xf32, #metadef.dims<["N", 28, 7, 8]>>) {
  %0 = "metadef.fourier_input"(%x) {axis = 1 : i64, length = 16 : i64, window = 7 : i64, padding = array<i64: 3, 3>} : (tensor<?x28x7x8xf32, #metadef.dims<["N", 28, 7, 8]>>) -> tensor<23x?x3x7x8xf32, #metadef.dims<[23, "N", 3, 7, 8]>>
  return
}

// -----

func.func @symbolic_axis(%x: tensor<1x?x7x8xf32, #metadef.dims<[1, "H", 7, 8]>>) {
  // expected-error @+1 {{fourier_input-C1: x is [N, H, W, C] of floats, axis 1 or 2 and static, got}}
  %0 = "metadef.fourier_input"(%x) {axis = 1 : i64, length = 16 : i64, window = 7 : i64, padding = array<i64: 3, 3>} : (tensor<1x?x7x8xf32, #metadef.dims<[1, "H", 7, 8]>>) -> tensor<23x1x3x7x8xf32>
  return
}

// -----

func.func @no_power_of_two(%x: tensor<1x28x7x8xf32>) {
  // expected-error @+1 {{fourier_input-C2: length is one of 8, 16, 32, 64, got 12}}
  %0 = "metadef.fourier_input"(%x) {axis = 1 : i64, length = 12 : i64, window = 7 : i64, padding = array<i64: 3, 3>} : (tensor<1x28x7x8xf32>) -> tensor<17x1x5x7x8xf32>
  return
}

// -----

func.func @window_longer_than_tiles(%x: tensor<1x28x7x8xf32>) {
  // expected-error @+1 {{fourier_input-C3: window is 1 to length, got 9 for 8}}
  %0 = "metadef.fourier_input"(%x) {axis = 1 : i64, length = 8 : i64, window = 9 : i64, padding = array<i64: 3, 3>} : (tensor<1x28x7x8xf32>) -> tensor<11x1x3x7x8xf32>
  return
}

// -----

func.func @negative_padding(%x: tensor<1x28x7x8xf32>) {
  // expected-error @+1 {{fourier_input-C4: padding is (low, high), 0 or more, got [-1, 3]}}
  %0 = "metadef.fourier_input"(%x) {axis = 1 : i64, length = 16 : i64, window = 7 : i64, padding = array<i64: -1, 3>} : (tensor<1x28x7x8xf32>) -> tensor<23x1x3x7x8xf32>
  return
}

// -----

func.func @no_window(%x: tensor<1x28x5x8xf32>) {
  // expected-error @+1 {{fourier_input-C5: the padded axis holds a window, got}}
  %0 = "metadef.fourier_input"(%x) {axis = 2 : i64, length = 16 : i64, window = 7 : i64, padding = array<i64: 0, 1>} : (tensor<1x28x5x8xf32>) -> tensor<23x1x28x1x8xf32>
  return
}

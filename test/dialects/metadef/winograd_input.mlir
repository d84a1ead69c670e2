// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.winograd_input"({{.*}}) {padding = array<i64: 1, 1, 1, 1>, tile = 4 : i64} : (tensor<?x14x7x8xf32, #metadef.dims<["N", 14, 7, 8]>>) -> tensor<36x?x4x2x8xf32, #metadef.dims<[36, "N", 4, 2, 8]>>
func.func @round_trip(%x: tensor<?x14x7x8xf32, #metadef.dims<["N", 14, 7, 8]>>) {
  %0 = "metadef.winograd_input"(%x) {tile = 4 : i64, padding = array<i64: 1, 1, 1, 1>} : (tensor<?x14x7x8xf32, #metadef.dims<["N", 14, 7, 8]>>) -> tensor<36x?x4x2x8xf32, #metadef.dims<[36, "N", 4, 2, 8]>>
  return
}

// -----

func.func @symbolic_height(%x: tensor<1x?x7x8xf32, #metadef.dims<[1, "H", 7, 8]>>) {
  // expected-error @+1 {{winograd_input-C1: x is [N, H, W, C] of floats, H and W static, got}}
  %0 = "metadef.winograd_input"(%x) {tile = 4 : i64, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x?x7x8xf32, #metadef.dims<[1, "H", 7, 8]>>) -> tensor<36x1x4x2x8xf32>
  return
}

// -----

func.func @tile_without_points(%x: tensor<1x14x7x8xf32>) {
  // expected-error @+1 {{winograd_input-C2: tile is one of 2, 3, 4, got 6}}
  %0 = "metadef.winograd_input"(%x) {tile = 6 : i64, padding = array<i64: 1, 1, 1, 1>} : (tensor<1x14x7x8xf32>) -> tensor<64x1x3x2x8xf32>
  return
}

// -----

func.func @negative_padding(%x: tensor<1x14x7x8xf32>) {
  // expected-error @+1 {{winograd_input-C3: padding is (low, high) of H and W, 0 or more, got [-1, 1, 1, 1]}}
  %0 = "metadef.winograd_input"(%x) {tile = 4 : i64, padding = array<i64: -1, 1, 1, 1>} : (tensor<1x14x7x8xf32>) -> tensor<36x1x3x2x8xf32>
  return
}

// -----

func.func @no_window(%x: tensor<1x2x7x8xf32>) {
  // expected-error @+1 {{winograd_input-C4: the padded image holds a window, got}}
  %0 = "metadef.winograd_input"(%x) {tile = 4 : i64, padding = array<i64: 0, 0, 1, 1>} : (tensor<1x2x7x8xf32>) -> tensor<36x1x1x2x8xf32>
  return
}

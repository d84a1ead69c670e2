// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.winograd_output"({{.*}}) {sizes = array<i64: 7, 4>, tile = 2 : i64} : (tensor<16x?x4x2x8xf32, #metadef.dims<[16, "N", 4, 2, 8]>>) -> tensor<?x7x4x8xf32, #metadef.dims<["N", 7, 4, 8]>>
func.func @round_trip(%x: tensor<16x?x4x2x8xf32, #metadef.dims<[16, "N", 4, 2, 8]>>) {
  %0 = "metadef.winograd_output"(%x) {tile = 2 : i64, sizes = array<i64: 7, 4>} : (tensor<16x?x4x2x8xf32, #metadef.dims<[16, "N", 4, 2, 8]>>) -> tensor<?x7x4x8xf32, #metadef.dims<["N", 7, 4, 8]>>
  return
}

// -----

func.func @no_tiles(%x: tensor<16x1x4x8xf32>) {
  // expected-error @+1 {{winograd_output-C1: x is [P, N, I, J, C] of floats, got}}
  %0 = "metadef.winograd_output"(%x) {tile = 2 : i64, sizes = array<i64: 7, 4>} : (tensor<16x1x4x8xf32>) -> tensor<1x7x4x8xf32>
  return
}

// -----

func.func @tile_without_points(%x: tensor<64x1x4x2x8xf32>) {
  // expected-error @+1 {{winograd_output-C2: tile is one of 2, 3, 4, got 6}}
  %0 = "metadef.winograd_output"(%x) {tile = 6 : i64, sizes = array<i64: 7, 4>} : (tensor<64x1x4x2x8xf32>) -> tensor<1x7x4x8xf32>
  return
}

// -----

func.func @too_few_products(%x: tensor<9x1x4x2x8xf32>) {
  // expected-error @+1 {{winograd_output-C3: P is (tile + 2)^2, got}}
  %0 = "metadef.winograd_output"(%x) {tile = 2 : i64, sizes = array<i64: 7, 4>} : (tensor<9x1x4x2x8xf32>) -> tensor<1x7x4x8xf32>
  return
}

// -----

func.func @tiles_beyond_the_edge(%x: tensor<16x1x4x2x8xf32>) {
  // expected-error @+1 {{winograd_output-C4: I and J tiles just cover the two sizes, 1 or more, got}}
  %0 = "metadef.winograd_output"(%x) {tile = 2 : i64, sizes = array<i64: 6, 4>} : (tensor<16x1x4x2x8xf32>) -> tensor<1x6x4x8xf32>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.unpack"({{.*}}) {at = 0 : i64, dim = 1 : i64, size = 60 : i64} : (tensor<2x16x32xf32>) -> tensor<16x60xf32>
func.func @round_trip(%a: tensor<2x16x32xf32>) {
  %0 = "metadef.unpack"(%a) {dim = 1 : i64, at = 0 : i64, size = 60 : i64} : (tensor<2x16x32xf32>) -> tensor<16x60xf32>
  return
}

// -----

func.func @no_panel(%a: tensor<32xf32>) {
  // expected-error @+1 {{unpack-C1: x has rank 2 or more, and its last dim, the panel, is static, got}}
  %0 = "metadef.unpack"(%a) {dim = 0 : i64, at = 0 : i64, size = 32 : i64} : (tensor<32xf32>) -> tensor<32xf32>
  return
}

// -----

func.func @dim_of_no_axis(%a: tensor<2x16x32xf32>) {
  // expected-error @+1 {{unpack-C2: dim is an axis of the result, at an axis of x but its last, got dim 2 and at 0}}
  %0 = "metadef.unpack"(%a) {dim = 2 : i64, at = 0 : i64, size = 32 : i64} : (tensor<2x16x32xf32>) -> tensor<16x32xf32>
  return
}

// -----

func.func @more_than_the_panels_hold(%a: tensor<2x16x32xf32>) {
  // expected-error @+1 {{unpack-C3: size fits in the panels, got 65 in 2 panels of 32}}
  %0 = "metadef.unpack"(%a) {dim = 1 : i64, at = 0 : i64, size = 65 : i64} : (tensor<2x16x32xf32>) -> tensor<16x65xf32>
  return
}

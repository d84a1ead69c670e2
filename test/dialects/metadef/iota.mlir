// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.iota"({{.*}}) {dim = 1 : i64, start = 0 : i64, step = 1 : i64
// CHECK-SAME: : () -> tensor<2x?xi64, #metadef.dims<[2, "S"]>>
func.func @round_trip() {
  %0 = "metadef.iota"() {dim = 1 : i64, start = 0 : i64, step = 1 : i64} : () -> tensor<2x?xi64, #metadef.dims<[2, "S"]>>
  return
}

// CHECK-LABEL: @of_floats
// CHECK: "metadef.iota"({{.*}}) {dim = 0 : i64, start = 1.000000e+00 : f32, step = -5.000000e-01 : f32
// CHECK-SAME: : () -> tensor<8xf32>
func.func @of_floats() {
  %0 = "metadef.iota"() {dim = 0 : i64, start = 1.000000e+00 : f32, step = -5.000000e-01 : f32} : () -> tensor<8xf32>
  return
}

// -----

func.func @dim_out_of_range() {
  // expected-error @+1 {{iota-C1: dim is an axis of the result, got dim 1 of rank 1}}
  %0 = "metadef.iota"() {dim = 1 : i64, start = 0 : i64, step = 1 : i64} : () -> tensor<4xi64>
  return
}

// -----

func.func @step_of_another_type() {
  // expected-error @+1 {{iota-C2: start and step are numbers of the element type, got step of f32 for i64}}
  %0 = "metadef.iota"() {dim = 0 : i64, start = 0 : i64, step = 1.0 : f32} : () -> tensor<4xi64>
  return
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.fill"({{.*}}) {value = 1.000000e+00 : f32
// CHECK-SAME: : () -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
func.func @round_trip() {
  %0 = "metadef.fill"() {value = 1.000000e+00 : f32} : () -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  return
}

// CHECK-LABEL: @of_bools
// CHECK: "metadef.fill"({{.*}}) {value = true
// CHECK-SAME: : () -> tensor<4xi1>
func.func @of_bools() {
  %0 = "metadef.fill"() {value = true} : () -> tensor<4xi1>
  return
}

// CHECK-LABEL: @rank_zero
// CHECK: "metadef.fill"({{.*}}) {value = 3 : i64
// CHECK-SAME: : () -> tensor<i64>
func.func @rank_zero() {
  %0 = "metadef.fill"() {value = 3 : i64} : () -> tensor<i64>
  return
}

// -----

func.func @value_of_another_type() {
  // expected-error @+1 {{fill-C1: value is a number of the element type, got i64 for f32}}
  %0 = "metadef.fill"() {value = 1 : i64} : () -> tensor<4xf32>
  return
}

// -----

func.func @value_is_a_string() {
  // expected-error @+1 {{attribute 'value' must be a number}}
  %0 = "metadef.fill"() {value = "1"} : () -> tensor<4xf32>
  return
}

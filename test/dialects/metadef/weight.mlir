// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.weight"({{.*}}) {name = "layer.weight"
// CHECK-SAME: : () -> tensor<4x8xf32>
func.func @round_trip() {
  %0 = "metadef.weight"() {name = "layer.weight"} : () -> tensor<4x8xf32>
  return
}

// -----

func.func @without_name() {
  // expected-error @+1 {{weight-C1: a weight has a name, got ''}}
  %0 = "metadef.weight"() {name = ""} : () -> tensor<4xf32>
  return
}

// -----

func.func @symbolic() {
  // expected-error @+1 {{weight-C2: a weight has static dims}}
  %0 = "metadef.weight"() {name = "w"} : () -> tensor<?xf32, #metadef.dims<["B"]>>
  return
}

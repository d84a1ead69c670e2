// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.dim"({{.*}}) {expr = "B*S + 1"
// CHECK-SAME: : () -> tensor<i64>
func.func @round_trip() {
  %0 = "metadef.dim"() {expr = "B*S + 1"} : () -> tensor<i64>
  return
}

// -----

func.func @not_an_expression() {
  // expected-error @+1 {{dim-C1: expr is a dim expression, got 'B +'}}
  %0 = "metadef.dim"() {expr = "B +"} : () -> tensor<i64>
  return
}

// -----

func.func @not_i64() {
  // expected-error @+1 {{dim-result: the result type follows from the operands, got element type i32 where i64 follows}}
  %0 = "metadef.dim"() {expr = "B"} : () -> tensor<i32>
  return
}

// RUN: metadef-opt %s --split-input-file --verify-diagnostics

func.func @on_the_same_line() -> i32 {
  return // expected-error {{'func.return' op has 0 operands, but enclosing function (@on_the_same_line) returns 1}}
}

// -----

func.func @lines_up_and_down(%a: i32) -> f32 {
  // expected-error @+2 {{type of return operand 0 ('i32') doesn't match}}
  // a line between
  return %a : i32
}

// -----

func.func @below_skips_comments(%a: i32) {
  // expected-error @below {{'scf.for' op requires one region}}
  // expected-note @below {{see current operation}}
  "scf.for"(%a) : (i32) -> ()
  return
}

// -----

func.func @above() -> i32 {
  return
  // expected-error @above {{has 0 operands}}
}

// -----

func.func @regular_expression() -> i32 {
  // expected-error-re @+1 {{has {{[0-9]}} operands, but}}
  return
}

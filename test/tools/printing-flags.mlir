// RUN: metadef-opt %s --mlir-print-debuginfo | filecheck %s --check-prefix=DEBUG
// RUN: metadef-opt %s --mlir-print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: metadef-opt %s | filecheck %s --check-prefix=PLAIN

// DEBUG: printing-flags.mlir":11:1)
// GENERIC: "func.return"() : () -> ()
// PLAIN: {{^}}  return{{$}}
// PLAIN-NOT: loc(

// a comment that puts the function on line 11
func.func @f() {
  return
}

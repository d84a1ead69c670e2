// RUN: metadef-opt %s --convert-torch-to-linalg | filecheck %s
// RUN: not metadef-opt %s --pass-pipeline='builtin.module(fnc.func(cse))' 2>&1 | filecheck %s --check-prefix=NO-OP
// A short form nests by itself where the pass wants a function.

// NO-OP: pass 'cse': no op 'fnc.func' to nest in

// CHECK: func.func @f
func.func @f() {
  return
}

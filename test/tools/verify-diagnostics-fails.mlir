// RUN: not metadef-opt %s --verify-diagnostics 2>&1 | filecheck %s
// RUN: not metadef-opt %s --load=%S/Inputs/passes.py --refuse --verify-diagnostics 2>&1 | filecheck %s --check-prefix=PASS

// CHECK: error: diagnostics differ from what is expected
// CHECK-NEXT: verify-diagnostics-fails.mlir:10: error: expected error 'never comes' on line 11 did not come

// PASS: error: expected error 'never comes' on line 11 did not come
// PASS-NEXT: verify-diagnostics-fails.mlir: error: unexpected error: 'builtin.module' op: expected another one

// expected-error @+1 {{never comes}}
func.func @f() {
  return
}

// RUN: metadef-opt %s --load=%S/Inputs/passes.py --pass-pipeline='builtin.module(mark,func.func(canonicalize,cse))' --mlir-timing -o /dev/null 2>&1 | filecheck %s

// CHECK: Execution time report
// CHECK: Total Execution Time:
// CHECK: Parser
// CHECK-NEXT: ) builtin.module
// CHECK-NEXT: ) mark
// CHECK-NEXT: ) func.func
// CHECK-NEXT: )   canonicalize
// CHECK-NEXT: )   cse
// CHECK-NEXT: Output
// CHECK-NEXT: Total
func.func @f() {
  return
}

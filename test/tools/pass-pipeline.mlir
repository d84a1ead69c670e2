// RUN: metadef-opt %s --load=%S/Inputs/passes.py --pass-pipeline='builtin.module(mark{attribute=test.first},func.func(canonicalize,cse),mark{attribute=test.second count=2})' | filecheck %s

// CHECK: module attributes {test.first = 1 : i64, test.second = 2 : i64}
// CHECK-LABEL: func.func @f
// CHECK-NEXT: return
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  return %a : i32
}

// RUN: metadef-opt %s --canonicalize | filecheck %s
// RUN: metadef-opt %s -canonicalize=max-iterations=3 | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT: return
func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  return %a : i32
}

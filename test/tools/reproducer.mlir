// RUN: rm -f %t.mlir
// RUN: not metadef-opt %s --load=%S/Inputs/passes.py --canonicalize --mark=count=3 --break-invariant --cse --mlir-generate-reproducer=%t.mlir 2>&1 | filecheck %s
// RUN: filecheck %s --input-file %t.mlir --check-prefix=FILE
// RUN: not metadef-opt --load=%S/Inputs/passes.py --run-reproducer %t.mlir 2>&1 | filecheck %s
// RUN: not metadef-opt --load=%S/Inputs/passes.py --run-reproducer %s 2>&1 | filecheck %s --check-prefix=NONE
// RUN: metadef-opt %s --cse --mlir-generate-reproducer=%t.none.mlir -o /dev/null
// RUN: not ls %t.none.mlir

// A pass with a bug: the IR before it is kept with the command that runs that pass alone.

// CHECK: metadef-opt: error: pass 'break-invariant' failed: AssertionError: two kernels have one name
// CHECK-NEXT: to reproduce: metadef-opt --load={{.*}}passes.py --run-reproducer {{.*}}.mlir

// FILE: // configuration: '--pass-pipeline=builtin.module(break-invariant)'
// FILE: module attributes {test.mark = 3 : i64}
// FILE-NOT: addi

// NONE: error: --run-reproducer: '{{.*}}reproducer.mlir' has no line that starts '//

func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  return %a : i32
}

// RUN: rm -rf %t && metadef-opt %s --pass-pipeline='builtin.module(func.func(canonicalize,cse))' --mlir-print-ir-tree-dir=%t -o /dev/null
// RUN: ls %t | filecheck %s --check-prefix=FILES
// RUN: filecheck %s --input-file %t/01-canonicalize.mlir
// RUN: rm -rf %t && metadef-opt %s --canonicalize --cse --mlir-print-ir-tree-dir=%t --mlir-print-ir-before=cse -o /dev/null
// RUN: ls %t | filecheck %s --check-prefix=BEFORE

// FILES: 01-canonicalize.mlir
// FILES-NEXT: 02-cse.mlir

// BEFORE-NOT: canonicalize
// BEFORE: 02-cse-before.mlir

// CHECK: IR Dump After canonicalize
// CHECK: func.func @f
func.func @f() {
  return
}

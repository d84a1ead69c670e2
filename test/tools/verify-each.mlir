// RUN: not metadef-opt %s --load=%S/Inputs/passes.py --break-module 2>&1 | filecheck %s
// RUN: not metadef-opt %s --load=%S/Inputs/passes.py --break-module --verify-each 2>&1 | filecheck %s
// RUN: metadef-opt %s --load=%S/Inputs/passes.py --break-module --verify-each=false | filecheck %s --check-prefix=OFF

// CHECK: error: the IR after pass 'break-module' does not verify: {{.*}}verify-each.mlir:9:1: error: empty block: expect at least a terminator

// OFF: "func.func"

func.func @f() {
  return
}

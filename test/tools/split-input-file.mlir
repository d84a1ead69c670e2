// RUN: not metadef-opt %s --split-input-file > %t.out 2> %t.err
// RUN: filecheck %s --input-file %t.out
// RUN: filecheck %s --input-file %t.err --check-prefix=ERROR

// A part that fails does not keep the others from running; lines are those of the file.

// CHECK: func.func @first
// CHECK: // -----
// CHECK-NOT: second
// CHECK: func.func @third
// ERROR: split-input-file.mlir:16:{{[0-9]+}}: error: use of undeclared SSA value

func.func @first() { return }
// -----
func.func @second() {
  "func.return"(%none) : (i32) -> ()
  return
}
// -----
func.func @third() { return }

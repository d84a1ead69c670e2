// RUN: metadef-opt %s --canonicalize --cse --mlir-print-ir-after-all -o /dev/null 2>&1 | filecheck %s --check-prefix=AFTER-ALL
// RUN: metadef-opt %s --canonicalize --cse --mlir-print-ir-before-all -o /dev/null 2>&1 | filecheck %s --check-prefix=BEFORE-ALL
// RUN: metadef-opt %s --canonicalize --cse --mlir-print-ir-after=cse -o /dev/null 2>&1 | filecheck %s --check-prefix=AFTER
// RUN: metadef-opt %s --canonicalize --cse --mlir-print-ir-before=canonicalize,cse -o /dev/null 2>&1 | filecheck %s --check-prefix=BEFORE-ALL
// RUN: metadef-opt %s --canonicalize --cse --mlir-print-ir-after=cse --mlir-print-op-generic -o /dev/null 2>&1 | filecheck %s --check-prefix=GENERIC

// AFTER-ALL: // -----// IR Dump After canonicalize //----- //
// AFTER-ALL-NOT: addi
// AFTER-ALL: // -----// IR Dump After cse //----- //

// BEFORE-ALL: // -----// IR Dump Before canonicalize //----- //
// BEFORE-ALL: arith.addi
// BEFORE-ALL: // -----// IR Dump Before cse //----- //
// BEFORE-ALL-NOT: addi

// AFTER-NOT: IR Dump After canonicalize
// AFTER: IR Dump After cse

// GENERIC: "func.func"() <{function_type = (i32) -> i32, sym_name = "f"}>

func.func @f(%a: i32) -> i32 {
  %0 = arith.addi %a, %a : i32
  return %a : i32
}

// RUN: not metadef-opt %s 2>&1 | filecheck %s --check-prefix=ERROR
// RUN: metadef-opt %s --allow-unregistered-dialect | filecheck %s

// ERROR: allow-unregistered-dialect.mlir:7:17: error: {{.*}}unregistered dialect
func.func @f() {
  // CHECK: "nobody.knows"() : () -> ()
  "nobody.knows"() : () -> ()
  return
}

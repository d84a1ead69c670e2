// RUN: not metadef-opt %s --pass-pipeline='builtin.module(lower-to-linalg)' 2>&1 | filecheck %s

// CHECK: 'metadef.weight' op: no lowering to linalg
func.func @a_weight_is_an_argument() -> tensor<4xf32> attributes {metadef.kernel} {
  %0 = "metadef.weight"() {name = "w"} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

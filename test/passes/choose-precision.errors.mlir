// RUN: metadef-opt %s --pass-pipeline='builtin.module(choose-precision)' --split-input-file --verify-diagnostics

func.func @unknown_type(%x: tensor<2x16xf32>) -> tensor<2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<16x4xf32>
  // expected-error @+1 {{'metadef.contraction' op: metadef.weights = "bf61" is none of f32, bf16, f16, i8; did you mean 'bf16'?; from}}
  %y = "metadef.contraction"(%x, %w) {metadef.weights = "bf61", transpose_lhs = false, transpose_rhs = false} : (tensor<2x16xf32>, tensor<16x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @operand_not_known_once(%x: tensor<2x16xf32>, %k: tensor<16x4xf32>) -> tensor<2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<16x4xf32>
  // expected-error @+1 {{'metadef.contraction' op: metadef.weights = "bf16" needs a right operand, and no left one, that is known once; from}}
  %y = "metadef.contraction"(%x, %k) {metadef.weights = "bf16", transpose_lhs = false, transpose_rhs = false} : (tensor<2x16xf32>, tensor<16x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

func.func @other_types(%x: tensor<2x16xf64>, %k: tensor<16x4xf64>) -> tensor<2x4xf64> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<16x4xf32>
  // expected-error @+1 {{'metadef.contraction' op: metadef.weights = "i8" needs operands in f32; from}}
  %y = "metadef.contraction"(%x, %k) {metadef.weights = "i8", transpose_lhs = false, transpose_rhs = false} : (tensor<2x16xf64>, tensor<16x4xf64>) -> tensor<2x4xf64>
  return %y : tensor<2x4xf64>
}

// -----

#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+sse4.2", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @cannot_convert_f16(%x: tensor<2x16xf32>) -> tensor<2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<16x4xf32>
  // expected-error @+1 {{'metadef.contraction' op: metadef.weights = "f16" needs a device with instructions that convert f16; from}}
  %y = "metadef.contraction"(%x, %w) {metadef.weights = "f16", transpose_lhs = false, transpose_rhs = false} : (tensor<2x16xf32>, tensor<16x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
}

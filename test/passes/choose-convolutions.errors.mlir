// RUN: metadef-opt %s --pass-pipeline='builtin.module(choose-convolutions)' --split-input-file --verify-diagnostics

#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @cannot_go(%x: tensor<1x56x56x64xf32>) -> tensor<1x28x28x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  // expected-error @+1 {{'metadef.conv' op: metadef.algorithm = "winograd" needs strides and dilations of 1; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "winograd", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x28x28x64xf32>
  return %y : tensor<1x28x28x64xf32>
}
}

// -----

#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @no_such_way(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  // expected-error @+1 {{'metadef.conv' op: metadef.algorithm = "winogrd" is none of direct, winograd, fft, winograd(TILE), fft(TILE)}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "winogrd", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
}

// -----

#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @no_such_tile(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x32xf32>
  // expected-error @+1 {{'metadef.conv' op: metadef.algorithm = "winograd(5)" needs tiles of 2, 3, 4, got 5; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "winograd(5)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

// -----

#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @too_few_channels(%x: tensor<1x56x56x8xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x8x32xf32>
  // expected-error @+1 {{'metadef.conv' op: metadef.algorithm = "winograd(4)" needs at least 32 channels to be accurate, got 8; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "winograd(4)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x8xf32>, tensor<1x3x3x8x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

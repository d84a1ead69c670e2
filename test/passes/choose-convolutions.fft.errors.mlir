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
func.func @strided(%x: tensor<1x56x56x64xf32>) -> tensor<1x28x28x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x7x7x64x64xf32>
  // expected-error @+1 {{metadef.algorithm = "fft" needs strides and dilations of 1; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 2, 2>} : (tensor<1x56x56x64xf32>, tensor<1x7x7x64x64xf32>) -> tensor<1x28x28x64xf32>
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
func.func @small_windows(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x64xf32>
  // expected-error @+1 {{metadef.algorithm = "fft" needs windows of 5 to 63 that are known once; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x64xf32>) -> tensor<1x56x56x64xf32>
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
func.func @groups(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<2x7x7x32x32xf32>
  // expected-error @+1 {{metadef.algorithm = "fft" needs one group, or one of each channel; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft", dilations = array<i64: 1, 1>, groups = 2 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<2x7x7x32x32xf32>) -> tensor<1x56x56x64xf32>
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
func.func @no_such_length(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x7x7x64x64xf32>
  // expected-error @+1 {{metadef.algorithm = "fft(4)" needs tiles of 8, 16, 32, 64, got 4; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft(4)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x7x7x64x64xf32>) -> tensor<1x56x56x64xf32>
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
func.func @short_tiles(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x9x9x64x64xf32>
  // expected-error @+1 {{metadef.algorithm = "fft(8)" needs tiles longer than its windows of 9, got 8; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft(8)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 4, 4, 4, 4>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x9x9x64x64xf32>) -> tensor<1x56x56x64xf32>
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
func.func @large_weights(%x: tensor<1x14x14x512xf32>) -> tensor<1x14x14x512xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x7x7x512x512xf32>
  // expected-error @+1 {{metadef.algorithm = "fft(16)" needs weights whose spectra are at most 64 MiB, got 529 MiB; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft(16)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x14x14x512xf32>, tensor<1x7x7x512x512xf32>) -> tensor<1x14x14x512xf32>
  return %y : tensor<1x14x14x512xf32>
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
func.func @too_large_to_make_once(%x: tensor<1x28x28x256xf32>) -> tensor<1x28x28x256xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x5x5x256x256xf32>
  // expected-error @+1 {{metadef.algorithm = "fft(16)" needs weights whose spectra can be kept, got 264 MiB in f64; from}}
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft(16)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 2, 2, 2, 2>, strides = array<i64: 1, 1>} : (tensor<1x28x28x256xf32>, tensor<1x5x5x256x256xf32>) -> tensor<1x28x28x256xf32>
  return %y : tensor<1x28x28x256xf32>
}
}

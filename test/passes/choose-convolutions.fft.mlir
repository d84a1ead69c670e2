// RUN: metadef-opt %s --pass-pipeline='builtin.module(choose-convolutions)' --split-input-file | filecheck %s

// Large windows of full convolutions: spectra along H, then along W, and back.
// CHECK-LABEL: func.func @large_windows
// CHECK: %[[W:.*]] = "metadef.weight"() {name = "w"}
// The weight's spectra are made of weights alone, of windows read backwards, in double precision.
// CHECK: "metadef.slice"({{.*}}) {dim = 1 : i64, start = "6", step = -1 : i64}
// CHECK: "metadef.slice"({{.*}}) {dim = 2 : i64, start = "6", step = -1 : i64}
// CHECK: "metadef.fourier_input"({{.*}}) {axis = 1 : i64, length = 16 : i64, padding = array<i64: 0, 9>, window = 16 : i64} : (tensor<1x7x7x2048xf64>) -> tensor<23x1x1x7x2048xf64>
// CHECK: "metadef.fourier_input"({{.*}}) {axis = 2 : i64, {{.*}} -> tensor<23x23x1x1x2048xf64>
// CHECK: %[[F:.*]] = "metadef.reshape"({{.*}}) : (tensor<23x23x1x1x2048xf64>) -> tensor<529x1x1x2048xf64>
// CHECK: %[[R:.*]] = "metadef.pointwise"(%[[F]]) {fn = "cast"{{.*}} -> tensor<529x1x1x2048xf32>
// CHECK: %[[S:.*]] = "metadef.reshape"(%[[R]]) : {{.*}} -> tensor<529x64x32xf32>
// CHECK: "metadef.fourier_input"(%arg0) {axis = 1 : i64, length = 16 : i64, padding = array<i64: 3, 3>, window = 7 : i64} : {{.*}} -> tensor<23x1x6x56x64xf32>
// CHECK: "metadef.fourier_input"({{.*}}) {axis = 2 : i64, length = 16 : i64, padding = array<i64: 3, 3>, window = 7 : i64} : (tensor<23x6x56x64xf32>) -> tensor<23x23x6x6x64xf32>
// CHECK: "metadef.contraction"(%{{.*}}, %[[S]]) {{.*}} -> tensor<529x36x32xf32>
// CHECK: "metadef.fourier_output"({{.*}}) {axis = 2 : i64, length = 16 : i64, size = 56 : i64, window = 7 : i64} : (tensor<23x23x6x6x32xf32>) -> tensor<23x6x56x32xf32>
// CHECK: "metadef.fourier_output"({{.*}}) {axis = 1 : i64, length = 16 : i64, size = 56 : i64, window = 7 : i64} : (tensor<23x1x6x56x32xf32>) -> tensor<1x56x56x32xf32>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @large_windows(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x7x7x64x32xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x7x7x64x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

// -----

// An axis along which windows are one element stays as it is.
// CHECK-LABEL: func.func @rows_of_windows
// CHECK: "metadef.fourier_input"(%arg0) {axis = 2 : i64, length = 16 : i64, {{.*}} -> tensor<23x1x56x6x64xf32>
// CHECK-NOT: axis = 1
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @rows_of_windows(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x1x7x64x64xf32>
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "fft(16)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 0, 0, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x1x7x64x64xf32>) -> tensor<1x56x56x64xf32>
  return %y : tensor<1x56x56x64xf32>
}
}

// -----

// Depthwise, a product of elements; on wide windows alone.
// CHECK-LABEL: func.func @wide_depthwise
// CHECK: "metadef.fourier_input"(%arg0) {axis = 1 : i64, length = 64 : i64
// CHECK: "metadef.pointwise"({{.*}}) {fn = "mul"{{.*}} : (tensor<9025x1x2x2x128xf32>, tensor<9025x1x1x1x128xf32>)
// CHECK-NOT: metadef.conv"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @wide_depthwise(%x: tensor<1x56x56x128xf32>) -> tensor<1x56x56x128xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<128x31x31x1x1xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 128 : i64, layout = "nhwc", padding = array<i64: 15, 15, 15, 15>, strides = array<i64: 1, 1>} : (tensor<1x56x56x128xf32>, tensor<128x31x31x1x1xf32>) -> tensor<1x56x56x128xf32>
  return %y : tensor<1x56x56x128xf32>
}
}

// -----

// CHECK-LABEL: func.func @narrow_depthwise
// CHECK: "metadef.conv"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @narrow_depthwise(%x: tensor<1x56x56x96xf32>) -> tensor<1x56x56x96xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<96x7x7x1x1xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 96 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x56x56x96xf32>, tensor<96x7x7x1x1xf32>) -> tensor<1x56x56x96xf32>
  return %y : tensor<1x56x56x96xf32>
}
}

// -----

// Weights that few outputs share are cheaper to read as windows than as spectra.
// CHECK-LABEL: func.func @few_outputs
// CHECK: "metadef.conv"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_outputs(%x: tensor<1x7x7x64xf32>) -> tensor<1x7x7x64xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x7x7x64x64xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 3, 3, 3, 3>, strides = array<i64: 1, 1>} : (tensor<1x7x7x64xf32>, tensor<1x7x7x64x64xf32>) -> tensor<1x7x7x64xf32>
  return %y : tensor<1x7x7x64xf32>
}
}

// -----

// Two devices decide otherwise: without a cache that holds the points, and with vectors twice as
// wide, moving them costs more than the products saved.
// CHECK-LABEL: func.func @cached
// CHECK: "metadef.fourier_input"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @cached(%x: tensor<1x56x56x24xf32>) -> tensor<1x56x56x24xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x5x5x24x24xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 2, 2, 2, 2>, strides = array<i64: 1, 1>} : (tensor<1x56x56x24xf32>, tensor<1x5x5x24x24xf32>) -> tensor<1x56x56x24xf32>
  return %y : tensor<1x56x56x24xf32>
}
}

// -----

// CHECK-LABEL: func.func @uncached
// CHECK: "metadef.conv"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 512 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @uncached(%x: tensor<1x56x56x24xf32>) -> tensor<1x56x56x24xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x5x5x24x24xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 2, 2, 2, 2>, strides = array<i64: 1, 1>} : (tensor<1x56x56x24xf32>, tensor<1x5x5x24x24xf32>) -> tensor<1x56x56x24xf32>
  return %y : tensor<1x56x56x24xf32>
}
}

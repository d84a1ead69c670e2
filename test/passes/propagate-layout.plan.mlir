// RUN: metadef-opt %s --pass-pipeline='builtin.module(propagate-layout)' --split-input-file | filecheck %s

// A depthwise convolution of rows of seven: they fill vectors of eight.
// CHECK-NOT: metadef.decisions
// CHECK-LABEL: func.func @rows_fill_vectors
// CHECK-NEXT: layout = "nchw"
// CHECK-NEXT: return
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @rows_fill_vectors(%x: tensor<1x256x7x7xf32>, %w: tensor<256x1x3x3xf32>) -> tensor<1x256x7x7xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 256 : i64, layout = "nchw"} : (tensor<1x256x7x7xf32>, tensor<256x1x3x3xf32>) -> tensor<1x256x7x7xf32>
  return %0 : tensor<1x256x7x7xf32>
}
}

// -----

// They leave more than half of a wider vector empty: its channels fill it.
// CHECK-LABEL: func.func @channels_fill_vectors
// CHECK: layout = "nhwc"
#spec = #device.spec<{
  name = "wide vectors", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 512 : i64,
  vector_registers = 32 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @channels_fill_vectors(%x: tensor<1x256x7x7xf32>, %w: tensor<256x1x3x3xf32>) -> tensor<1x256x7x7xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 256 : i64, layout = "nchw"} : (tensor<1x256x7x7xf32>, tensor<256x1x3x3xf32>) -> tensor<1x256x7x7xf32>
  return %0 : tensor<1x256x7x7xf32>
}
}

// -----

// A pool of few channels that nobody has last.
// CHECK-LABEL: func.func @pools_plain_images
// CHECK-NEXT: layout = "nchw"
// CHECK-NEXT: return
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @pools_plain_images(%x: tensor<1x3x64x64xf32>) -> tensor<1x3x32x32xf32> {
  %0 = "metadef.pool"(%x) {fn = "max", kernel = array<i64: 2, 2>, strides = array<i64: 2, 2>, padding = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, count_include_pad = true, layout = "nchw"} : (tensor<1x3x64x64xf32>) -> tensor<1x3x32x32xf32>
  return %0 : tensor<1x3x32x32xf32>
}
}

// -----

// A plan's choice goes first, and is noted; who follows has to bring its image to nhwc now.
// CHECK: metadef.decisions = [{chosen = "nchw", key = "2119ef8dbc2d0fb09d25dda028ed81a2", kind = "layout", line = {{.*}}, op = "conv", refused = [], shapes = {{.*}}}, {chosen = "nhwc", {{.*}}refused = [],
// CHECK-LABEL: func.func @as_planned
// CHECK-NEXT: layout = "nchw"
// CHECK-NEXT: perm = array<i64: 0, 2, 3, 1>
// CHECK: layout = "nhwc"
// CHECK-NEXT: perm = array<i64: 0, 3, 1, 2>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {layout = {"2119ef8dbc2d0fb09d25dda028ed81a2" = ["nchw"]}}} {
func.func @as_planned(%x: tensor<1x3x32x32xf32>, %w: tensor<64x3x3x3xf32>, %v: tensor<64x64x3x3xf32>) -> tensor<1x64x32x32xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x3x32x32xf32>, tensor<64x3x3x3xf32>) -> tensor<1x64x32x32xf32>
  %1 = "metadef.conv"(%0, %v) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x64x32x32xf32>, tensor<64x64x3x3xf32>) -> tensor<1x64x32x32xf32>
  return %1 : tensor<1x64x32x32xf32>
}
}

// -----

// What cannot be is passed over.
// CHECK: chosen = "nchw"
// CHECK-SAME: refused = ["'metadef.conv' op: layout = \22nchw8c\22 is none of nhwc, nchw
// CHECK-LABEL: func.func @second_best
// CHECK-NEXT: layout = "nchw"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {layout = {"fab459b6177ffd43ccc6bc165fd562ab" = ["nchw8c", "nchw"]}}} {
func.func @second_best(%x: tensor<1x32x14x14xf32>, %w: tensor<64x32x3x3xf32>) -> tensor<1x64x14x14xf32> {
  %0 = "metadef.conv"(%x, %w) {strides = array<i64: 1, 1>, padding = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nchw"} : (tensor<1x32x14x14xf32>, tensor<64x32x3x3xf32>) -> tensor<1x64x14x14xf32>
  return %0 : tensor<1x64x14x14xf32>
}
}

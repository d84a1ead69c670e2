// RUN: metadef-opt %s --pass-pipeline='builtin.module(choose-convolutions)' --split-input-file | filecheck %s

// What the plan wants goes before the cost, which would take tiles of 4; and is noted.
// CHECK: metadef.decisions = [{chosen = "winograd(2)", key = "ab1603d9651c4bb7ab631802ea5f1177", kind = "convolution", line = {{.*}}, op = "conv", refused = [], shapes = ["1x56x56x64xf32", "1x3x3x64x32xf32", "1x56x56x32xf32"]}]
// CHECK-LABEL: func.func @as_planned
// CHECK: "metadef.winograd_input"(%arg0) {{.*}}tile = 2 : i64
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {convolution = {"ab1603d9651c4bb7ab631802ea5f1177" = ["winograd(2)", "direct"]}}} {
func.func @as_planned(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x32xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

// -----

// What cannot be is passed over.
// CHECK: chosen = "direct"
// CHECK-SAME: refused = ["'metadef.conv' op: metadef.algorithm = \22winograd(4)\22 needs at least 32 channels to be accurate, got 8; from
// CHECK-LABEL: func.func @second_best
// CHECK: "metadef.conv"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {convolution = {"bdf860928a3b457791aefb54c748e208" = ["winograd(4)", "direct"]}}} {
func.func @second_best(%x: tensor<1x56x56x8xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x8x32xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x8xf32>, tensor<1x3x3x8x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

// -----

// A plan that says nothing of a convolution leaves it to the cost.
// CHECK: chosen = "winograd(4)"
// CHECK-LABEL: func.func @silent_plan
// CHECK: "metadef.winograd_input"(%arg0) {{.*}}tile = 4 : i64
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {}} {
func.func @silent_plan(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x32xf32>
  %y = "metadef.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

// -----

// Without a plan nothing is noted; an attribute says the side of the tiles, too.
// CHECK-NOT: metadef.decisions
// CHECK-LABEL: func.func @by_attribute
// CHECK: "metadef.winograd_input"(%arg0) {{.*}}tile = 3 : i64
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @by_attribute(%x: tensor<1x56x56x64xf32>) -> tensor<1x56x56x32xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<1x3x3x64x32xf32>
  %y = "metadef.conv"(%x, %w) {metadef.algorithm = "winograd(3)", dilations = array<i64: 1, 1>, groups = 1 : i64, layout = "nhwc", padding = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x56x56x64xf32>, tensor<1x3x3x64x32xf32>) -> tensor<1x56x56x32xf32>
  return %y : tensor<1x56x56x32xf32>
}
}

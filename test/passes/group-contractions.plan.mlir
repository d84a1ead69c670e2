// RUN: metadef-opt %s --pass-pipeline='builtin.module(group-contractions)' --split-input-file | filecheck %s

// What the plan wants goes before the cost, and is noted with the shapes of all.
// CHECK: metadef.decisions = [{chosen = "grouped", key = "9b1adbfbf3790c20079bbf89cdee0a44", kind = "grouping", line = {{.*}}, op = "contraction", refused = [], shapes = ["128x768xf32", "768x768xf32", "128x768xf32", "128x768xf32", "768x768xf32", "128x768xf32"]}]
// CHECK-LABEL: func.func @as_planned
// CHECK: "metadef.contraction"({{.*}}) -> tensor<128x1536xf32>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {grouping = {"9b1adbfbf3790c20079bbf89cdee0a44" = ["grouped"]}}} {
func.func @as_planned(%x: tensor<128x768xf32>) -> (tensor<128x768xf32>, tensor<128x768xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<768x768xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<768x768xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  return %0, %1 : tensor<128x768xf32>, tensor<128x768xf32>
}
}

// -----

// A plan that says nothing of them leaves it to the cost.
// CHECK: chosen = "apart"
// CHECK-LABEL: func.func @silent_plan
// CHECK-COUNT-2: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {}} {
func.func @silent_plan(%x: tensor<128x768xf32>) -> (tensor<128x768xf32>, tensor<128x768xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<768x768xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<768x768xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  return %0, %1 : tensor<128x768xf32>, tensor<128x768xf32>
}
}

// -----

// What cannot be is refused.
// CHECK: chosen = "apart"
// CHECK-SAME: refused = ["'metadef.contraction' op: grouping = \22grouped\22 needs right operands, and no left one, that are known once; from
// CHECK-LABEL: func.func @refused
// CHECK-COUNT-2: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {grouping = {"9b1adbfbf3790c20079bbf89cdee0a44" = ["grouped", "apart"]}}} {
func.func @refused(%x: tensor<128x768xf32>, %w: tensor<768x768xf32>) -> (tensor<128x768xf32>, tensor<128x768xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<768x768xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<128x768xf32>, tensor<768x768xf32>) -> tensor<128x768xf32>
  return %0, %1 : tensor<128x768xf32>, tensor<128x768xf32>
}
}

// -----

// Against the cost, apart.
// CHECK: chosen = "apart"
// CHECK-LABEL: func.func @kept_apart
// CHECK-COUNT-2: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {grouping = {"40a227fea8185653bce7a1b97877a7e9" = ["apart"]}}} {
func.func @kept_apart(%x: tensor<1x64xf32>) -> (tensor<1x32xf32>, tensor<1x32xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<32x64xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<32x64xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<1x64xf32>, tensor<32x64xf32>) -> tensor<1x32xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<1x64xf32>, tensor<32x64xf32>) -> tensor<1x32xf32>
  return %0, %1 : tensor<1x32xf32>, tensor<1x32xf32>
}
}

// -----

// What weights share is made once, before all of them.
// CHECK-LABEL: func.func @shared_scale
// CHECK: %[[S:.*]] = "metadef.pointwise"({{.*}}) {fn = "exp"
// CHECK: %[[K:.*]] = "metadef.pointwise"({{.*}}, %[[S]]) {fn = "mul"
// CHECK: %[[V:.*]] = "metadef.pointwise"({{.*}}, %[[S]]) {fn = "mul"
// CHECK: "metadef.concat"({{.*}}, %[[K]], %[[V]]) {dim = 0 : i64
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {grouping = {"66404d347048361142021f1631fbcf04" = ["grouped"]}}} {
func.func @shared_scale(%x: tensor<8x64xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) {
  %q = "metadef.weight"() {name = "q"} : () -> tensor<32x64xf32>
  %k = "metadef.weight"() {name = "k"} : () -> tensor<32x64xf32>
  %v = "metadef.weight"() {name = "v"} : () -> tensor<32x64xf32>
  %s = "metadef.weight"() {name = "s"} : () -> tensor<64xf32>
  %0 = "metadef.contraction"(%x, %q) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  %1 = "metadef.pointwise"(%s) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = "metadef.pointwise"(%k, %1) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<32x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
  %3 = "metadef.contraction"(%x, %2) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  %4 = "metadef.pointwise"(%v, %1) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<32x64xf32>, tensor<64xf32>) -> tensor<32x64xf32>
  %5 = "metadef.contraction"(%x, %4) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  return %0, %3, %5 : tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>
}
}

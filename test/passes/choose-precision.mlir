// RUN: metadef-opt %s --pass-pipeline='builtin.module(choose-precision)' --split-input-file | filecheck %s

// A contraction of two types: what is in memory is narrow, and nobody makes wide weights of it.
// CHECK-LABEL: func.func @halves
// CHECK-DAG: %[[W:.*]] = "metadef.weight"() {name = "w"}
// CHECK-DAG: %[[V:.*]] = "metadef.weight"() {name = "v"}
// CHECK: %[[B:.*]] = "metadef.pointwise"(%[[W]]) {fn = "cast"{{.*}} -> tensor<8x16xbf16>
// CHECK: %[[X:.*]] = "metadef.contraction"(%arg0, %[[B]]) {transpose_lhs = false, transpose_rhs = false} : (tensor<2x8xf32>, tensor<8x16xbf16>) -> tensor<2x16xf32>
// CHECK: %[[H:.*]] = "metadef.pointwise"(%[[V]]) {fn = "cast"{{.*}} -> tensor<4x16xf16>
// CHECK: "metadef.contraction"(%[[X]], %[[H]]) {{.*}} -> tensor<2x4xf32>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @halves(%x: tensor<2x8xf32>) -> tensor<2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x16xf32>
  %v = "metadef.weight"() {name = "v"} : () -> tensor<4x16xf32>
  %0 = "metadef.contraction"(%x, %w) {metadef.weights = "bf16", transpose_lhs = false, transpose_rhs = false} : (tensor<2x8xf32>, tensor<8x16xf32>) -> tensor<2x16xf32>
  %y = "metadef.contraction"(%0, %v) {metadef.weights = "f16", transpose_lhs = false, transpose_rhs = true} : (tensor<2x16xf32>, tensor<4x16xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
}

// -----

// Eight bits: a scale for each output, which multiplies the sums.
// CHECK-LABEL: func.func @bytes
// CHECK: %[[W:.*]] = "metadef.weight"() {name = "w"}
// CHECK: %[[A:.*]] = "metadef.pointwise"(%[[W]]) {fn = "abs"
// CHECK: %[[L:.*]] = "metadef.reduce"(%[[A]]) {dims = array<i64: 1>, fn = "max", keepdim = true} {{.*}} -> tensor<4x1xf32>
// CHECK: %[[M:.*]] = "metadef.pointwise"(%[[L]], %{{.*}}) {fn = "maximum"
// CHECK: %[[S:.*]] = "metadef.pointwise"(%[[M]], %{{.*}}) {fn = "div"
// CHECK: %[[D:.*]] = "metadef.pointwise"(%[[W]], %[[S]]) {fn = "div"
// CHECK: %[[R:.*]] = "metadef.pointwise"(%[[D]]) {fn = "round"
// CHECK: %[[Q:.*]] = "metadef.pointwise"(%[[R]]) {fn = "cast"{{.*}} -> tensor<4x16xi8>
// CHECK: %[[C:.*]] = "metadef.reshape"(%[[S]]) : (tensor<4x1xf32>) -> tensor<4xf32>
// CHECK: %[[P:.*]] = "metadef.contraction"(%arg0, %[[Q]]) {{.*}} : (tensor<2x16xf32>, tensor<4x16xi8>) -> tensor<2x4xf32>
// CHECK: "metadef.pointwise"(%[[P]], %[[C]]) {fn = "mul"
func.func @bytes(%x: tensor<2x16xf32>) -> tensor<2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4x16xf32>
  %y = "metadef.contraction"(%x, %w) {metadef.weights = "i8", transpose_lhs = false, transpose_rhs = true} : (tensor<2x16xf32>, tensor<4x16xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// -----

// A matrix for each batch: so is its scale.
// CHECK-LABEL: func.func @batches
// CHECK: %[[C:.*]] = "metadef.reshape"({{.*}}) : (tensor<3x4x1xf32>) -> tensor<3x1x4xf32>
// CHECK: %[[P:.*]] = "metadef.contraction"
// CHECK: "metadef.pointwise"(%[[P]], %[[C]]) {fn = "mul"{{.*}} -> tensor<3x2x4xf32>
func.func @batches(%x: tensor<3x2x16xf32>) -> tensor<3x2x4xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<3x4x16xf32>
  %y = "metadef.contraction"(%x, %w) {metadef.weights = "i8", transpose_lhs = false, transpose_rhs = true} : (tensor<3x2x16xf32>, tensor<3x4x16xf32>) -> tensor<3x2x4xf32>
  return %y : tensor<3x2x4xf32>
}

// -----

// Nobody allowed an error: f32.
// CHECK-LABEL: func.func @without_limit
// CHECK-NOT: bf16
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @without_limit(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
}

// -----

// One row waits for 64 MiB of weights from memory: a quarter of the bytes where the limit allows it.
// CHECK-LABEL: func.func @loose_limit
// CHECK: (tensor<1x4096xf32>, tensor<4096x4096xi8>) -> tensor<1x4096xf32>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.01 : f64} {
func.func @loose_limit(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
}

// -----

// Half of them where it allows no more.
// CHECK-LABEL: func.func @tight_limit
// CHECK: (tensor<1x4096xf32>, tensor<4096x4096xbf16>) -> tensor<1x4096xf32>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.005 : f64} {
func.func @tight_limit(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
}

// -----

// And f32 under the error of bf16.
// CHECK-LABEL: func.func @tightest_limit
// CHECK-NOT: bf16
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.001 : f64} {
func.func @tightest_limit(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
}

// -----

// Errors of nine layers add up to three times one's.
// CHECK-LABEL: func.func @deep
// CHECK-COUNT-9: tensor<4096x4096xbf16>) -> tensor<1x4096xf32>
// CHECK-NOT: xi8
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.01 : f64} {
func.func @deep(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %1 = "metadef.contraction"(%0, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %2 = "metadef.contraction"(%1, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %3 = "metadef.contraction"(%2, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %4 = "metadef.contraction"(%3, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %5 = "metadef.contraction"(%4, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %6 = "metadef.contraction"(%5, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %7 = "metadef.contraction"(%6, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %y = "metadef.contraction"(%7, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
}

// -----

// Many rows wait for arithmetic: nothing to gain.
// CHECK-LABEL: func.func @many_rows
// CHECK-NOT: xi8
// CHECK-NOT: bf16
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.1 : f64} {
func.func @many_rows(%x: tensor<128x4096xf32>) -> tensor<128x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<128x4096xf32>, tensor<4096x4096xf32>) -> tensor<128x4096xf32>
  return %y : tensor<128x4096xf32>
}
}

// -----

// Another device, whose last cache holds the weights: half the bytes are enough to wait for nothing.
// CHECK-LABEL: func.func @large_cache
// CHECK: (tensor<1x4096xf32>, tensor<4096x4096xbf16>) -> tensor<1x4096xf32>
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 268435456 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.01 : f64} {
func.func @large_cache(%x: tensor<1x4096xf32>) -> tensor<1x4096xf32> {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %y = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %y : tensor<1x4096xf32>
}
}

// -----

// Two computed operands, and two known ones: nobody stores the one, and the other runs once.
// CHECK-LABEL: func.func @not_weights
// CHECK-NOT: xi8
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma,+f16c", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 8388608 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.error_limit = 0.1 : f64} {
func.func @not_weights(%x: tensor<1x4096xf32>, %k: tensor<4096x4096xf32>) -> (tensor<1x4096xf32>, tensor<1x4096xf32>) {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<4096x4096xf32>
  %v = "metadef.weight"() {name = "v"} : () -> tensor<1x4096xf32>
  %0 = "metadef.contraction"(%x, %k) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  %1 = "metadef.contraction"(%v, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<1x4096xf32>, tensor<4096x4096xf32>) -> tensor<1x4096xf32>
  return %0, %1 : tensor<1x4096xf32>, tensor<1x4096xf32>
}
}

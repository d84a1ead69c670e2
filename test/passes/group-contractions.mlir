// RUN: metadef-opt %s --pass-pipeline='builtin.module(group-contractions)' --split-input-file | filecheck %s

// Narrow products of few rows: one. A bias that only some have is -0.0 for the others. Slices sink
// below reshapes, next to who reads them.
// CHECK-LABEL: func.func @projections
// CHECK: %[[Q:.*]] = "metadef.weight"() {name = "q"}
// CHECK: %[[K:.*]] = "metadef.weight"() {name = "k"}
// CHECK: %[[B:.*]] = "metadef.weight"() {name = "b"}
// CHECK: %[[W:.*]] = "metadef.concat"(%[[Q]], %[[K]]) {dim = 0 : i64, {{.*}} -> tensor<96x64xf32>
// CHECK: %[[Y:.*]] = "metadef.contraction"(%arg0, %[[W]]) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x64xf32>, tensor<96x64xf32>) -> tensor<8x96xf32>
// CHECK: %[[ZERO:.*]] = "metadef.fill"() {value = -0.000000e+00 : f32} : () -> tensor<32xf32>
// CHECK: %[[V:.*]] = "metadef.concat"(%[[B]], %[[ZERO]])
// CHECK: %[[S:.*]] = "metadef.pointwise"(%[[Y]], %[[V]]) {fn = "add"
// CHECK-DAG: %[[H:.*]] = "metadef.reshape"(%[[S]]) : (tensor<8x96xf32>) -> tensor<1x8x6x16xf32>
// CHECK-DAG: %[[P:.*]] = "metadef.slice"(%[[H]]) {dim = 2 : i64, start = "0", step = 1 : i64} : (tensor<1x8x6x16xf32>) -> tensor<1x8x4x16xf32>
// CHECK-DAG: %[[R:.*]] = "metadef.slice"({{.*}}) {dim = 2 : i64, start = "4", step = 1 : i64} : (tensor<1x8x6x16xf32>) -> tensor<1x8x2x16xf32>
// CHECK-DAG: "metadef.transpose"(%[[P]])
// CHECK-DAG: "metadef.transpose"(%[[R]])
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @projections(%x: tensor<8x64xf32>) -> (tensor<1x4x8x16xf32>, tensor<1x2x8x16xf32>) {
  %q = "metadef.weight"() {name = "q"} : () -> tensor<64x64xf32>
  %k = "metadef.weight"() {name = "k"} : () -> tensor<32x64xf32>
  %b = "metadef.weight"() {name = "b"} : () -> tensor<64xf32>
  %0 = "metadef.contraction"(%x, %q) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
  %1 = "metadef.pointwise"(%0, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8x64xf32>, tensor<64xf32>) -> tensor<8x64xf32>
  %2 = "metadef.reshape"(%1) : (tensor<8x64xf32>) -> tensor<1x8x4x16xf32>
  %3 = "metadef.transpose"(%2) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x8x4x16xf32>) -> tensor<1x4x8x16xf32>
  %4 = "metadef.contraction"(%x, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<8x64xf32>, tensor<32x64xf32>) -> tensor<8x32xf32>
  %5 = "metadef.reshape"(%4) : (tensor<8x32xf32>) -> tensor<1x8x2x16xf32>
  %6 = "metadef.transpose"(%5) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x8x2x16xf32>) -> tensor<1x2x8x16xf32>
  return %3, %6 : tensor<1x4x8x16xf32>, tensor<1x2x8x16xf32>
}
}

// -----

// What follows all alike follows the one: a bias each, an activation. Weights of the other layout are
// turned around.
// CHECK-LABEL: func.func @branches
// CHECK: %[[T:.*]] = "metadef.transpose"({{.*}}) {perm = array<i64: 1, 0>} : (tensor<16x32xf32>) -> tensor<32x16xf32>
// CHECK: %[[W:.*]] = "metadef.concat"({{.*}}, %[[T]]) {dim = 1 : i64, {{.*}} -> tensor<32x24xf32>
// CHECK: %[[Y:.*]] = "metadef.contraction"(%arg0, %[[W]]) {transpose_lhs = false, transpose_rhs = false}
// CHECK: %[[S:.*]] = "metadef.pointwise"(%[[Y]], {{.*}}) {fn = "add"
// CHECK: %[[A:.*]] = "metadef.pointwise"(%[[S]]) {fn = "relu"{{.*}} -> tensor<4x24xf32>
// CHECK: "metadef.slice"(%[[A]]) {dim = 1 : i64, start = "0"
// CHECK: "metadef.slice"(%[[A]]) {dim = 1 : i64, start = "8"
// CHECK-NOT: metadef.pointwise
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @branches(%x: tensor<4x32xf32>) -> tensor<4x24xf32> {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<32x8xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<16x32xf32>
  %b = "metadef.weight"() {name = "b"} : () -> tensor<8xf32>
  %c = "metadef.weight"() {name = "c"} : () -> tensor<16xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = false} : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.pointwise"(%0, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = "metadef.pointwise"(%1) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<4x32xf32>, tensor<16x32xf32>) -> tensor<4x16xf32>
  %4 = "metadef.pointwise"(%3, %c) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
  %5 = "metadef.pointwise"(%4) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %6 = "metadef.concat"(%2, %5) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<4x24xf32>
  return %6 : tensor<4x24xf32>
}
}

// -----

// Two cores have enough to do with each of the products: little to gain, so they stay apart.
// CHECK-LABEL: func.func @few_cores
// CHECK-COUNT-3: metadef.contraction
// CHECK-NOT: metadef.slice
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_cores(%x: tensor<40x256xf32>) -> tensor<1x8x40x32xf32> {
  %q = "metadef.weight"() {name = "q"} : () -> tensor<256x256xf32>
  %k = "metadef.weight"() {name = "k"} : () -> tensor<64x256xf32>
  %v = "metadef.weight"() {name = "v"} : () -> tensor<64x256xf32>
  %0 = "metadef.contraction"(%x, %q) {transpose_lhs = false, transpose_rhs = true} : (tensor<40x256xf32>, tensor<256x256xf32>) -> tensor<40x256xf32>
  %1 = "metadef.contraction"(%x, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<40x256xf32>, tensor<64x256xf32>) -> tensor<40x64xf32>
  %2 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<40x256xf32>, tensor<64x256xf32>) -> tensor<40x64xf32>
  %3 = "metadef.reshape"(%0) : (tensor<40x256xf32>) -> tensor<1x40x8x32xf32>
  %6 = "metadef.transpose"(%3) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x8x32xf32>) -> tensor<1x8x40x32xf32>
  %4 = "metadef.reshape"(%1) : (tensor<40x64xf32>) -> tensor<1x40x2x32xf32>
  %7 = "metadef.transpose"(%4) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x2x32xf32>) -> tensor<1x2x40x32xf32>
  %5 = "metadef.reshape"(%2) : (tensor<40x64xf32>) -> tensor<1x40x2x32xf32>
  %8 = "metadef.transpose"(%5) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x2x32xf32>) -> tensor<1x2x40x32xf32>
  %9 = "metadef.attention"(%6, %7, %8) {causal = false, safe = true, scale = 1.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x8x40x32xf32>, tensor<1x2x40x32xf32>, tensor<1x2x40x32xf32>) -> tensor<1x8x40x32xf32>
  return %9 : tensor<1x8x40x32xf32>
}
}

// -----

// The narrow ones leave most of 64 cores idle: one product.
// CHECK-LABEL: func.func @many_cores
// CHECK: "metadef.contraction"({{.*}}) -> tensor<40x384xf32>
// CHECK-NOT: metadef.contraction
#spec = #device.spec<{
  name = "server", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 64 : i64, threads = 64 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 64 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @many_cores(%x: tensor<40x256xf32>) -> tensor<1x8x40x32xf32> {
  %q = "metadef.weight"() {name = "q"} : () -> tensor<256x256xf32>
  %k = "metadef.weight"() {name = "k"} : () -> tensor<64x256xf32>
  %v = "metadef.weight"() {name = "v"} : () -> tensor<64x256xf32>
  %0 = "metadef.contraction"(%x, %q) {transpose_lhs = false, transpose_rhs = true} : (tensor<40x256xf32>, tensor<256x256xf32>) -> tensor<40x256xf32>
  %1 = "metadef.contraction"(%x, %k) {transpose_lhs = false, transpose_rhs = true} : (tensor<40x256xf32>, tensor<64x256xf32>) -> tensor<40x64xf32>
  %2 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<40x256xf32>, tensor<64x256xf32>) -> tensor<40x64xf32>
  %3 = "metadef.reshape"(%0) : (tensor<40x256xf32>) -> tensor<1x40x8x32xf32>
  %6 = "metadef.transpose"(%3) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x8x32xf32>) -> tensor<1x8x40x32xf32>
  %4 = "metadef.reshape"(%1) : (tensor<40x64xf32>) -> tensor<1x40x2x32xf32>
  %7 = "metadef.transpose"(%4) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x2x32xf32>) -> tensor<1x2x40x32xf32>
  %5 = "metadef.reshape"(%2) : (tensor<40x64xf32>) -> tensor<1x40x2x32xf32>
  %8 = "metadef.transpose"(%5) {perm = array<i64: 0, 2, 1, 3>} : (tensor<1x40x2x32xf32>) -> tensor<1x2x40x32xf32>
  %9 = "metadef.attention"(%6, %7, %8) {causal = false, safe = true, scale = 1.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0>} : (tensor<1x8x40x32xf32>, tensor<1x2x40x32xf32>, tensor<1x2x40x32xf32>) -> tensor<1x8x40x32xf32>
  return %9 : tensor<1x8x40x32xf32>
}
}

// -----

// Epilogues that differ would be passes of their own: apart, on the same device.
// CHECK-LABEL: func.func @gated
// CHECK-COUNT-2: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @gated(%x: tensor<64x64xf32>) -> tensor<64x96xf32> {
  %g = "metadef.weight"() {name = "g"} : () -> tensor<96x64xf32>
  %u = "metadef.weight"() {name = "u"} : () -> tensor<96x64xf32>
  %0 = "metadef.contraction"(%x, %g) {transpose_lhs = false, transpose_rhs = true} : (tensor<64x64xf32>, tensor<96x64xf32>) -> tensor<64x96xf32>
  %1 = "metadef.pointwise"(%0) {fn = "silu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<64x96xf32>) -> tensor<64x96xf32>
  %2 = "metadef.contraction"(%x, %u) {transpose_lhs = false, transpose_rhs = true} : (tensor<64x64xf32>, tensor<96x64xf32>) -> tensor<64x96xf32>
  %3 = "metadef.pointwise"(%1, %2) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x96xf32>, tensor<64x96xf32>) -> tensor<64x96xf32>
  return %3 : tensor<64x96xf32>
}
}

// -----

// Weights that a product reads alone, too, would be stored twice.
// CHECK-LABEL: func.func @shared_weights
// CHECK-COUNT-3: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @shared_weights(%x: tensor<2x32xf32>, %z: tensor<2x32xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<8x32xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x32xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x32xf32>, tensor<8x32xf32>) -> tensor<2x8xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x32xf32>, tensor<8x32xf32>) -> tensor<2x8xf32>
  %2 = "metadef.contraction"(%z, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x32xf32>, tensor<8x32xf32>) -> tensor<2x8xf32>
  return %0, %1, %2 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
}

// -----

// The same weights by few rows twice: they are joined once.
// CHECK-LABEL: func.func @few_rows
// CHECK: %[[W:.*]] = "metadef.concat"({{.*}} -> tensor<64x256xf32>
// CHECK: "metadef.contraction"(%arg0, %[[W]])
// CHECK: "metadef.contraction"(%arg1, %[[W]])
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_rows(%x: tensor<1x256xf32>, %z: tensor<2x256xf32>) -> (tensor<1x64xf32>, tensor<2x64xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<32x256xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<32x256xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<1x256xf32>, tensor<32x256xf32>) -> tensor<1x32xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<1x256xf32>, tensor<32x256xf32>) -> tensor<1x32xf32>
  %2 = "metadef.concat"(%0, %1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x64xf32>
  %3 = "metadef.contraction"(%z, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x256xf32>, tensor<32x256xf32>) -> tensor<2x32xf32>
  %4 = "metadef.contraction"(%z, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x256xf32>, tensor<32x256xf32>) -> tensor<2x32xf32>
  %5 = "metadef.concat"(%3, %4) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2x32xf32>, tensor<2x32xf32>) -> tensor<2x64xf32>
  return %2, %5 : tensor<1x64xf32>, tensor<2x64xf32>
}
}

// -----

// The same weights by few rows and by many: one way alone is stored.
// CHECK-LABEL: func.func @few_and_many_rows
// CHECK-COUNT-4: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @few_and_many_rows(%x: tensor<1x256xf32>, %z: tensor<2048x256xf32>) -> (tensor<1x64xf32>, tensor<2048x64xf32>) {
  %v = "metadef.weight"() {name = "v"} : () -> tensor<32x256xf32>
  %w = "metadef.weight"() {name = "w"} : () -> tensor<32x256xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<1x256xf32>, tensor<32x256xf32>) -> tensor<1x32xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<1x256xf32>, tensor<32x256xf32>) -> tensor<1x32xf32>
  %2 = "metadef.concat"(%0, %1) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x64xf32>
  %3 = "metadef.contraction"(%z, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<2048x256xf32>, tensor<32x256xf32>) -> tensor<2048x32xf32>
  %4 = "metadef.contraction"(%z, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<2048x256xf32>, tensor<32x256xf32>) -> tensor<2048x32xf32>
  %5 = "metadef.concat"(%3, %4) {dim = 1 : i64, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<2048x32xf32>, tensor<2048x32xf32>) -> tensor<2048x64xf32>
  return %2, %5 : tensor<1x64xf32>, tensor<2048x64xf32>
}
}

// -----

// Operands computed in the call have nothing to join ahead of time.
// CHECK-LABEL: func.func @computed
// CHECK-COUNT-2: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @computed(%x: tensor<2x32xf32>, %v: tensor<8x32xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>) {
  %w = "metadef.weight"() {name = "w"} : () -> tensor<8x32xf32>
  %0 = "metadef.contraction"(%x, %v) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x32xf32>, tensor<8x32xf32>) -> tensor<2x8xf32>
  %1 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = true} : (tensor<2x32xf32>, tensor<8x32xf32>) -> tensor<2x8xf32>
  return %0, %1 : tensor<2x8xf32>, tensor<2x8xf32>
}
}

// -----

// A part of a dim that is merged stays above the reshape.
// CHECK-LABEL: func.func @merged
// CHECK: %[[P:.*]] = "metadef.slice"
// CHECK: "metadef.reshape"(%[[P]])
func.func @merged(%x: tensor<2x32xf32>) -> tensor<16xf32> {
  %0 = "metadef.slice"(%x) {dim = 1 : i64, start = "8", step = 1 : i64} : (tensor<2x32xf32>) -> tensor<2x8xf32>
  %1 = "metadef.reshape"(%0) : (tensor<2x8xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}

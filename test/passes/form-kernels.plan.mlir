// RUN: metadef-opt %s --pass-pipeline='builtin.module(form-kernels)' --split-input-file | filecheck %s

// A plan keeps a chain out of the kernel before it, and the decision is noted.
// CHECK: metadef.decisions = [{chosen = "apart", key = "8cabaf7450aadc9e248ec3c8a373050e", kind = "fusion", line = {{.*}}, op = "contraction add relu", refused = [], shapes = {{.*}}}]
// CHECK-LABEL: func.func @epilogue_apart
// CHECK: metadef.contraction
// CHECK-NEXT: metadef.yield
// CHECK: metadef.kernel
// CHECK: fn = "add"
// CHECK-NEXT: fn = "relu"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {fusion = {"8cabaf7450aadc9e248ec3c8a373050e" = ["apart"]}}} {
func.func @epilogue_apart(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>, %b: tensor<96xf32>) -> tensor<64x96xf32> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  %1 = "metadef.pointwise"(%0, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x96xf32>, tensor<96xf32>) -> tensor<64x96xf32>
  %2 = "metadef.pointwise"(%1) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<64x96xf32>) -> tensor<64x96xf32>
  return %2 : tensor<64x96xf32>
}
}

// -----

// A plan that says nothing of a chain leaves it to the cost.
// CHECK: chosen = "fused"
// CHECK-LABEL: func.func @silent_plan
// CHECK: metadef.contraction
// CHECK-NEXT: fn = "add"
// CHECK-NEXT: fn = "relu"
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {}} {
func.func @silent_plan(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>, %b: tensor<96xf32>) -> tensor<64x96xf32> {
  %0 = "metadef.contraction"(%x, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  %1 = "metadef.pointwise"(%0, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<64x96xf32>, tensor<96xf32>) -> tensor<64x96xf32>
  %2 = "metadef.pointwise"(%1) {fn = "relu", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<64x96xf32>) -> tensor<64x96xf32>
  return %2 : tensor<64x96xf32>
}
}

// -----

// Eight heads read a mask: to compute it for each costs more than to keep it.
// CHECK-NOT: metadef.decisions
// CHECK-LABEL: func.func @mask_apart
// CHECK: fn = "minimum"
// CHECK-NEXT: metadef.yield
// CHECK: metadef.attention
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @mask_apart(%q: tensor<8x128x64xf32>, %k: tensor<8x128x64xf32>, %v: tensor<8x128x64xf32>, %m: tensor<128x128xf32>, %s: tensor<f32>) -> tensor<8x128x64xf32> {
  %0 = "metadef.pointwise"(%m, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128x128xf32>
  %1 = "metadef.pointwise"(%0) {fn = "abs", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %2 = "metadef.pointwise"(%1, %s) {fn = "minimum", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128x128xf32>
  %3 = "metadef.attention"(%q, %k, %v, %2) {causal = false, scale = 0.125 : f64, safe = false} : (tensor<8x128x64xf32>, tensor<8x128x64xf32>, tensor<8x128x64xf32>, tensor<128x128xf32>) -> tensor<8x128x64xf32>
  return %3 : tensor<8x128x64xf32>
}
}

// -----

// Wider vectors compute it in less time than it takes to read it.
// CHECK-LABEL: func.func @mask_fused
// CHECK: fn = "minimum"
// CHECK-NEXT: metadef.attention
#spec = #device.spec<{
  name = "wide vectors", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 2048 : i64,
  vector_registers = 32 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @mask_fused(%q: tensor<8x128x64xf32>, %k: tensor<8x128x64xf32>, %v: tensor<8x128x64xf32>, %m: tensor<128x128xf32>, %s: tensor<f32>) -> tensor<8x128x64xf32> {
  %0 = "metadef.pointwise"(%m, %s) {fn = "mul", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128x128xf32>
  %1 = "metadef.pointwise"(%0) {fn = "abs", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %2 = "metadef.pointwise"(%1, %s) {fn = "minimum", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128x128xf32>
  %3 = "metadef.attention"(%q, %k, %v, %2) {causal = false, scale = 0.125 : f64, safe = false} : (tensor<8x128x64xf32>, tensor<8x128x64xf32>, tensor<8x128x64xf32>, tensor<128x128xf32>) -> tensor<8x128x64xf32>
  return %3 : tensor<8x128x64xf32>
}
}

// -----

// The other operand passes by each box of rows, from the second cache level.
// CHECK-LABEL: func.func @rows_fused
// CHECK: fn = "exp"
// CHECK-NEXT: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @rows_fused(%x: tensor<4096x256xf32>, %w: tensor<256x128xf32>) -> tensor<4096x128xf32> {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %1 = "metadef.contraction"(%0, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<4096x256xf32>, tensor<256x128xf32>) -> tensor<4096x128xf32>
  return %1 : tensor<4096x128xf32>
}
}

// -----

// It does not fit in there: the product is cut for the caches, in a kernel of its own.
// CHECK-LABEL: func.func @rows_apart
// CHECK: fn = "exp"
// CHECK-NEXT: metadef.yield
// CHECK: metadef.contraction
#spec = #device.spec<{
  name = "small cache", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 65536 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec} {
func.func @rows_apart(%x: tensor<4096x256xf32>, %w: tensor<256x128xf32>) -> tensor<4096x128xf32> {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4096x256xf32>) -> tensor<4096x256xf32>
  %1 = "metadef.contraction"(%0, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<4096x256xf32>, tensor<256x128xf32>) -> tensor<4096x128xf32>
  return %1 : tensor<4096x128xf32>
}
}

// -----

// Somebody else reads the chain's value.
// CHECK: chosen = "apart"
// CHECK-SAME: refused = ["'metadef.contraction' op: fusion = \22fused\22 needs a chain whose values nobody else reads; from
// CHECK-LABEL: func.func @read_by_others
// CHECK: fn = "exp"
// CHECK-NEXT: metadef.yield
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {fusion = {"289da3e8afa8e573f480d6e7fdd521c5" = ["fused"]}}} {
func.func @read_by_others(%x: tensor<64x128xf32>, %w: tensor<128x96xf32>) -> (tensor<64x96xf32>, tensor<64x128xf32>) {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = "metadef.contraction"(%0, %w) {transpose_lhs = false, transpose_rhs = false} : (tensor<64x128xf32>, tensor<128x96xf32>) -> tensor<64x96xf32>
  return %1, %0 : tensor<64x96xf32>, tensor<64x128xf32>
}
}

// -----

// A view has nothing to make.
// CHECK: chosen = "fused"
// CHECK-SAME: refused = ["'metadef.contraction' op: fusion = \22apart\22 cannot be: an unpack is a view of panels; from {{.*}}", "'metadef.contraction' op: fusion = \22fsued\22 is none of fused, apart; did you mean 'fused'?
// CHECK-LABEL: func.func @panels
// CHECK: metadef.unpack
// CHECK-NEXT: metadef.contraction
#spec = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 3 : i64, bytes = 33554432 : i64, line_bytes = 64 : i64, shared_by = 2 : i64}],
  types = ["f32"], alignment = 64 : i64}>
module attributes {device.spec = #spec, metadef.plan = {fusion = {"80945226e7b5c7bd91a97d4a56d6dc18" = ["apart", "fsued"]}}} {
func.func @panels(%x: tensor<64x128xf32>, %w: tensor<2x128x64xf32>) -> tensor<64x128xf32> {
  %0 = "metadef.unpack"(%w) {at = 0 : i64, dim = 1 : i64, size = 128 : i64} : (tensor<2x128x64xf32>) -> tensor<128x128xf32>
  %1 = "metadef.contraction"(%x, %0) {transpose_lhs = false, transpose_rhs = false} : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  return %1 : tensor<64x128xf32>
}
}

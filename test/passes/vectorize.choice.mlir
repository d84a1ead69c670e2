// RUN: metadef-opt %s --pass-pipeline='builtin.module(vectorize,canonicalize,cse)' --split-input-file | filecheck %s

// What a plan chooses for a kernel's main nest goes before the rules: one product, under two choices
// on one device, and by the rules of two devices.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Blocks of 4 rows by 3 vectors; boxes of 16 rows by 48 lanes.
// CHECK-LABEL: func.func @wide
// CHECK-NOT: metadef.choice
// CHECK: :12 = scf.for {{.*}} -> (vector<16xf32>, 
func.func @wide(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>)
    attributes {metadef.choice = {rows = 4 : i64, vectors = 3 : i64, tiles = array<i64: 16, 48>, parts = 8 : i64}} {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// Blocks of 2 rows by 1 vector, the reduction in chunks of 10 of its 40 turns.
// CHECK-LABEL: func.func @in_chunks
// CHECK: %[[CHUNK:.*]] = arith.constant 10 : index
// CHECK: scf.for {{.*}} step %[[CHUNK]]
// CHECK: :2 = scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>)
func.func @in_chunks(%x: memref<64x40xf32>, %w: memref<40x96xf32>, %y: memref<64x96xf32>)
    attributes {metadef.choice = {rows = 2 : i64, vectors = 1 : i64, chunks = array<i64: 10>}} {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<64x40xf32>, memref<40x96xf32>) outs(%y : memref<64x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#avx2 = #device.spec<{
  name = "laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "znver3",
  features = "+avx2,+fma", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64,
  instructions = [{kind = "fma", lhs = "f32", rhs = "f32", accumulator = "f32", depth = 1 : i64, intrinsic = "llvm.fma"}],
  memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}],
  types = ["f32"], alignment = 64 : i64}>

// 16 registers of 256 bits: by the rules 6 rows by 2 vectors.
// CHECK-LABEL: func.func @by_rule_on_avx2
// CHECK: :12 = scf.for {{.*}} -> (vector<8xf32>, 
module attributes {device.spec = #avx2} {
func.func @by_rule_on_avx2(%x: memref<60x40xf32>, %w: memref<40x96xf32>, %y: memref<60x96xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<60x40xf32>, memref<40x96xf32>) outs(%y : memref<60x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#sse = #device.spec<{
  name = "old laptop", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v2",
  features = "+sse4.2", cores = 2 : i64, threads = 2 : i64, vector_bits = 128 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}],
  types = ["f32"], alignment = 64 : i64}>

// SSE overwrites operands, and takes two instructions for a value of a row: 2 rows by 4 vectors, of
// which each is loaded when it is its turn.
// CHECK-LABEL: func.func @by_rule_on_sse
// CHECK: :8 = scf.for {{.*}} -> (vector<4xf32>,
// CHECK: memref.load
// CHECK: memref.load
// CHECK-NOT: memref.load
// CHECK: %[[NEXT:.*]] = vector.load
// CHECK-NEXT: math.fma %{{.*}}, %[[NEXT]], %
// CHECK-NEXT: math.fma %{{.*}}, %[[NEXT]], %
module attributes {device.spec = #sse} {
func.func @by_rule_on_sse(%x: memref<60x40xf32>, %w: memref<40x96xf32>, %y: memref<60x96xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<60x40xf32>, memref<40x96xf32>) outs(%y : memref<60x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
#avx = #device.spec<{
  name = "sandy", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "sandybridge",
  features = "+sse4.2,+avx", cores = 2 : i64, threads = 2 : i64, vector_bits = 256 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 17179869184 : i64,
  caches = [{level = 1 : i64, bytes = 32768 : i64, line_bytes = 64 : i64, shared_by = 1 : i64},
            {level = 2 : i64, bytes = 524288 : i64, line_bytes = 64 : i64, shared_by = 1 : i64}],
  types = ["f32"], alignment = 64 : i64}>

// Without multiply-adds products need registers, too: 4 rows by 2 vectors.
// CHECK-LABEL: func.func @by_rule_without_multiply_adds
// CHECK: :8 = scf.for {{.*}} -> (vector<8xf32>,
// CHECK: memref.load
// CHECK: vector.load
// CHECK: vector.load
// CHECK: memref.load
// CHECK-NOT: vector.load
// CHECK: memref.load
module attributes {device.spec = #avx} {
func.func @by_rule_without_multiply_adds(%x: memref<60x40xf32>, %w: memref<40x96xf32>, %y: memref<60x96xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<60x40xf32>, memref<40x96xf32>) outs(%y : memref<60x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}
}

// -----

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>

// 32 registers of 512 bits: 12 rows by 2 vectors.
// CHECK-LABEL: func.func @by_rule_on_avx512
// CHECK: :24 = scf.for {{.*}} -> (vector<16xf32>, 
func.func @by_rule_on_avx512(%x: memref<60x40xf32>, %w: memref<40x96xf32>, %y: memref<60x96xf32>) {
  linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<60x40xf32>, memref<40x96xf32>) outs(%y : memref<60x96xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

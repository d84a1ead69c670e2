// RUN: metadef-opt %s --expand-math | filecheck %s

module attributes {device.spec = #device.spec<{
  name = "old", kind = "cpu", triple = "x86_64-unknown-linux-gnu", cpu = "x86-64-v2",
  features = "", cores = 1 : i64, threads = 1 : i64, vector_bits = 128 : i64,
  vector_registers = 16 : i64, instructions = [], memory_bytes = 4294967296 : i64,
  caches = [], types = ["f32", "f64"], alignment = 64 : i64}>} {

// CHECK-LABEL: func.func @sums_of_products_round_twice
// CHECK-NEXT: %[[PRODUCT:.*]] = arith.mulf %arg0, %arg1 : vector<4xf32>
// CHECK-NEXT: arith.addf %[[PRODUCT]], %arg2 : vector<4xf32>
// CHECK-NEXT: return
func.func @sums_of_products_round_twice(%a: vector<4xf32>, %b: vector<4xf32>, %c: vector<4xf32>) -> vector<4xf32> {
  %y = math.fma %a, %b, %c : vector<4xf32>
  return %y : vector<4xf32>
}

// CHECK-LABEL: func.func @bounds_of_exp_rest_on_exact_products
// CHECK-NOT: math.fma
// CHECK: arith.mulf {{.*}} : vector<4xf32>
// CHECK-NEXT: arith.addf {{.*}} : vector<4xf32>
// CHECK: %[[EXACT:.*]] = arith.mulf {{.*}} : vector<4xf64>
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[EXACT]], {{.*}} : vector<4xf64>
// CHECK-NEXT: arith.truncf %[[SUM]] : vector<4xf64> to vector<4xf32>
// CHECK-NOT: math.fma
// CHECK: return
func.func @bounds_of_exp_rest_on_exact_products(%x: vector<4xf32>) -> vector<4xf32> {
  %y = math.exp %x : vector<4xf32>
  return %y : vector<4xf32>
}

// CHECK-LABEL: func.func @f64_is_left_to_libm
// CHECK: math.fma
func.func @f64_is_left_to_libm(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}
}

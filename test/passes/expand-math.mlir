// RUN: metadef-opt %s --pass-pipeline='builtin.module(expand-math)' | filecheck %s

// CHECK-LABEL: func.func @rsqrt_is_exact_division
func.func @rsqrt_is_exact_division(%x: vector<16xf32>) -> vector<16xf32> {
  // CHECK: %[[ROOT:.*]] = math.sqrt
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00>
  // CHECK: arith.divf %[[ONE]], %[[ROOT]]
  %y = math.rsqrt %x : vector<16xf32>
  return %y : vector<16xf32>
}

// CHECK-LABEL: func.func @exp_has_no_call_or_branch
func.func @exp_has_no_call_or_branch(%x: f32) -> f32 {
  // CHECK-NOT: math.exp
  // CHECK-NOT: scf.if
  // CHECK: math.fma
  // CHECK: arith.shli
  // CHECK: return
  %y = math.exp %x : f32
  return %y : f32
}

// CHECK-LABEL: func.func @sin_branches_for_huge_angles
func.func @sin_branches_for_huge_angles(%x: vector<8xf64>) -> vector<8xf64> {
  // CHECK: vector.reduction <or>
  // CHECK: scf.if
  // CHECK-NOT: math.sin
  // CHECK: return
  %y = math.sin %x : vector<8xf64>
  return %y : vector<8xf64>
}

// CHECK-LABEL: func.func @half_is_computed_in_single
func.func @half_is_computed_in_single(%x: vector<4xf16>) -> vector<4xf16> {
  // CHECK: arith.extf %{{.*}} : vector<4xf16> to vector<4xf32>
  // CHECK-NOT: math.tanh
  // CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
  %y = math.tanh %x : vector<4xf16>
  return %y : vector<4xf16>
}

// CHECK-LABEL: func.func @square_is_a_multiplication
func.func @square_is_a_multiplication(%x: vector<8xf32>) -> vector<8xf32> {
  // CHECK-NOT: math
  // CHECK: arith.mulf
  // CHECK-NEXT: return
  %two = arith.constant dense<2.0> : vector<8xf32>
  %y = math.powf %x, %two : vector<8xf32>
  return %y : vector<8xf32>
}

// CHECK-LABEL: func.func @integer_power_is_a_loop
func.func @integer_power_is_a_loop(%x: i64, %n: i64) -> i64 {
  // CHECK: scf.for
  // CHECK-NOT: math.ipowi
  // CHECK: return
  %y = math.ipowi %x, %n : i64
  return %y : i64
}

// CHECK-LABEL: func.func @clampf_keeps_nan
func.func @clampf_keeps_nan(%x: f32, %lo: f32, %hi: f32) -> f32 {
  // CHECK: %[[LOW:.*]] = arith.maximumf
  // CHECK: arith.minimumf %[[LOW]]
  %y = math.clampf %x to [%lo, %hi] : f32
  return %y : f32
}

// CHECK-LABEL: func.func @leaves_what_llvm_has_instructions_for
func.func @leaves_what_llvm_has_instructions_for(%x: vector<8xf32>) -> vector<8xf32> {
  // CHECK: math.sqrt
  // CHECK: math.floor
  // CHECK: math.absf
  %0 = math.sqrt %x : vector<8xf32>
  %1 = math.floor %0 : vector<8xf32>
  %2 = math.absf %1 : vector<8xf32>
  return %2 : vector<8xf32>
}

// RUN: metadef-opt %s --verify-diagnostics --split-input-file | filecheck %s

// CHECK-LABEL: @round_trip
// CHECK: "metadef.attention"({{.*}}) {causal = false, safe = true, scale = 1.250000e-01 : f64
// CHECK-SAME: : (tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>) -> tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>
func.func @round_trip(%a: tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, %b: tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, %c: tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>) {
  %0 = "metadef.attention"(%a, %b, %c) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>) -> tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>
  return
}

// CHECK-LABEL: @with_mask
// CHECK: "metadef.attention"({{.*}}) {causal = false, safe = true, scale = 1.250000e-01 : f64
// CHECK-SAME: : (tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x?xi1, #metadef.dims<["L", "S"]>>) -> tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>
func.func @with_mask(%a: tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, %b: tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, %c: tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, %d: tensor<?x?xi1, #metadef.dims<["L", "S"]>>) {
  %0 = "metadef.attention"(%a, %b, %c, %d) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x?xi1, #metadef.dims<["L", "S"]>>) -> tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>
  return
}

// CHECK-LABEL: @with_added_mask
// CHECK: "metadef.attention"({{.*}}) {causal = true, safe = true, scale = 1.250000e-01 : f64
// CHECK-SAME: : (tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x1x1x?xf32, #metadef.dims<["B", 1, 1, "S"]>>) -> tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>
func.func @with_added_mask(%a: tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, %b: tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, %c: tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, %d: tensor<?x1x1x?xf32, #metadef.dims<["B", 1, 1, "S"]>>) {
  %0 = "metadef.attention"(%a, %b, %c, %d) {causal = true, safe = true, scale = 1.250000e-01 : f64} : (tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x2x?x64xf32, #metadef.dims<["B", 2, "S", 64]>>, tensor<?x1x1x?xf32, #metadef.dims<["B", 1, 1, "S"]>>) -> tensor<?x8x?x64xf32, #metadef.dims<["B", 8, "L", 64]>>
  return
}

// -----

func.func @ranks_differ(%a: tensor<8x5x64xf32>, %b: tensor<1x8x5x64xf32>, %c: tensor<8x5x64xf32>) {
  // expected-error @+1 {{attention-C1: q, k and v have equal rank, 3 or more}}
  %0 = "metadef.attention"(%a, %b, %c) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<8x5x64xf32>, tensor<1x8x5x64xf32>, tensor<8x5x64xf32>) -> tensor<8x5x64xf32>
  return
}

// -----

func.func @of_integers(%a: tensor<8x5x64xi32>, %b: tensor<8x5x64xi32>, %c: tensor<8x5x64xi32>) {
  // expected-error @+1 {{attention-C2: q, k and v have one float element type, got i32, i32 and i32}}
  %0 = "metadef.attention"(%a, %b, %c) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<8x5x64xi32>, tensor<8x5x64xi32>, tensor<8x5x64xi32>) -> tensor<8x5x64xi32>
  return
}

// -----

func.func @lengths_differ(%a: tensor<8x5x64xf32>, %b: tensor<8x5x64xf32>, %c: tensor<8x6x64xf32>) {
  // expected-error @+1 {{attention-C3: E of q and k, S of k and v, and batch dims agree, got 5 and 6}}
  %0 = "metadef.attention"(%a, %b, %c) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<8x5x64xf32>, tensor<8x5x64xf32>, tensor<8x6x64xf32>) -> tensor<8x5x64xf32>
  return
}

// -----

func.func @heads_not_a_multiple(%a: tensor<8x5x64xf32>, %b: tensor<3x5x64xf32>, %c: tensor<3x5x64xf32>) {
  // expected-error @+1 {{attention-C4: the heads of q are a multiple of those of k and v, got 8 heads of q and 3}}
  %0 = "metadef.attention"(%a, %b, %c) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<8x5x64xf32>, tensor<3x5x64xf32>, tensor<3x5x64xf32>) -> tensor<8x5x64xf32>
  return
}

// -----

func.func @mask_of_other_dims(%a: tensor<8x5x64xf32>, %b: tensor<8x5x64xf32>, %c: tensor<8x5x64xf32>, %d: tensor<4x5xi1>) {
  // expected-error @+1 {{attention-C5: mask is i1 or of q's element type and broadcasts to [B.., H, L, S], got [4, 5]xi1}}
  %0 = "metadef.attention"(%a, %b, %c, %d) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<8x5x64xf32>, tensor<8x5x64xf32>, tensor<8x5x64xf32>, tensor<4x5xi1>) -> tensor<8x5x64xf32>
  return
}

// -----

func.func @mask_of_integers(%a: tensor<8x5x64xf32>, %b: tensor<8x5x64xf32>, %c: tensor<8x5x64xf32>, %d: tensor<5x5xi32>) {
  // expected-error @+1 {{attention-C5: mask is i1 or of q's element type and broadcasts to [B.., H, L, S], got a mask of i32}}
  %0 = "metadef.attention"(%a, %b, %c, %d) {causal = false, safe = true, scale = 1.250000e-01 : f64} : (tensor<8x5x64xf32>, tensor<8x5x64xf32>, tensor<8x5x64xf32>, tensor<5x5xi32>) -> tensor<8x5x64xf32>
  return
}

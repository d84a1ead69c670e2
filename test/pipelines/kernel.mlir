// RUN: metadef-opt %s --pipeline=kernel --check-stages | filecheck %s
// RUN: not metadef-opt %s --cse --check-stages 2>&1 | filecheck %s --check-prefix=ALONE

// Each stage leaves only the dialects it declares; the last one leaves LLVM's with the kernels' ABI.

// ALONE: error: --check-stages goes with --pipeline=NAME alone

// CHECK: llvm.func @add_exp(%{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: !llvm.ptr, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: i64, %{{[a-z0-9]+}}: !llvm.ptr)
// CHECK-NOT: "metadef.
// CHECK-NOT: linalg.
func.func @add_exp(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%x, %b) {fn = "add", operandSegmentSizes = array<i32: 1, 1, 0>} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %1 = "metadef.pointwise"(%0) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

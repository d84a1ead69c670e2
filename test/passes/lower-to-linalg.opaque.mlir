// RUN: metadef-opt %s --pass-pipeline='builtin.module(lower-to-linalg)' | filecheck %s

// The region is lowered by torch-mlir; its private scan becomes loops, its run-time sizes symbols.
// CHECK-LABEL: @inlines_what_torch_mlir_makes
// CHECK-NOT: tm_tensor
// CHECK: scf.for %{{.*}} = %{{.*}} to %arg2
// CHECK: arith.addf
// CHECK-NOT: tm_tensor
// CHECK: return
func.func @inlines_what_torch_mlir_makes(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>> attributes {metadef.kernel} {
  %0 = "metadef.opaque"(%x) ({
  ^bb0(%a: !torch.vtensor<[?,4],f32>):
    %one = torch.constant.int 1
    %none = torch.constant.none
    %r = torch.aten.cumsum %a, %one, %none : !torch.vtensor<[?,4],f32>, !torch.int, !torch.none -> !torch.vtensor<[?,4],f32>
    "metadef.yield"(%r) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (!torch.vtensor<[?,4],f32>) -> ()
  }) {operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>, resultSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0>} : (tensor<?x4xf32, #metadef.dims<["B", 4]>>) -> tensor<?x4xf32, #metadef.dims<["B", 4]>>
  return %0 : tensor<?x4xf32, #metadef.dims<["B", 4]>>
}

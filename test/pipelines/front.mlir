// RUN: metadef-opt %s --pipeline=front --check-stages | filecheck %s

// From torch ops to one dispatch over a planned arena; the kernel is a function of its own.

// CHECK-LABEL: func.func private @contraction_add_relu
// CHECK-SAME: metadef.kernel
// CHECK: "metadef.contraction"
// CHECK: fn = "add"
// CHECK: fn = "relu"

// CHECK-LABEL: func.func @main(%arg0: tensor<?x4xf32, #metadef.dims<["B", 4]>>)
// CHECK-SAME: metadef.arena =
// CHECK: "metadef.weight"() {name = "w"}
// CHECK: "metadef.dispatch"
// CHECK-SAME: kernel = @contraction_add_relu
// CHECK-NOT: torch.
module attributes {metadef.symbols = {B = {divisor = 1 : i64, max = 64 : i64, min = 2 : i64}}} {
  func.func @main(%x: !torch.vtensor<[?,4],f32> {metadef.dims = ["B", 4]},
                  %w: !torch.vtensor<[8,4],f32> {metadef.weight = "w"},
                  %b: !torch.vtensor<[8],f32> {metadef.weight = "b"}) -> !torch.vtensor<[?,8],f32> {
    %0 = torch.aten.linear %x, %w, %b : !torch.vtensor<[?,4],f32>, !torch.vtensor<[8,4],f32>, !torch.vtensor<[8],f32> -> !torch.vtensor<[?,8],f32>
    %1 = torch.aten.relu %0 : !torch.vtensor<[?,8],f32> -> !torch.vtensor<[?,8],f32>
    return %1 : !torch.vtensor<[?,8],f32>
  }
}

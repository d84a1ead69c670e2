// RUN: metadef-opt %s --pass-pipeline='builtin.module(convert-torch-to-metadef)' --split-input-file --verify-diagnostics

func.func @refuses_complex(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],complex<f32>> {
  // expected-error @+1 {{'torch.my.op' op: tensors of complex<f32> have no metadef element type; from}}
  %0 = torch.operator "torch.my.op"(%x) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],complex<f32>>
  return %0 : !torch.vtensor<[4],complex<f32>>
}

// -----

func.func @refuses_contradicting_dims(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[5],f32> {
  // expected-error @+1 {{'torch.aten.relu' op: dims [4] follow from the operands, torch says [5]; from}}
  %0 = torch.aten.relu %x : !torch.vtensor<[4],f32> -> !torch.vtensor<[5],f32>
  return %0 : !torch.vtensor<[5],f32>
}

// -----

func.func @makes_up_no_dims(%x: !torch.vtensor<[4],f32>) -> !torch.vtensor<[?],f32> {
  // expected-error @+1 {{'torch.my.op' op: torch did not say the result's dims and metadef has no shape rule for it; from}}
  %0 = torch.operator "torch.my.op"(%x) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[?],f32>
  return %0 : !torch.vtensor<[?],f32>
}

// RUN: not metadef-opt %s --split-input-file --lower-to-llvm 2>&1 | filecheck %s --check-prefix=LLVM
// RUN: not metadef-opt %s --split-input-file --vectorize 2>&1 | filecheck %s --check-prefix=VECTORIZE
// RUN: not metadef-opt %s --split-input-file --bufferize 2>&1 | filecheck %s --check-prefix=BUFFERIZE
// RUN: not metadef-opt %s --split-input-file --form-kernels 2>&1 | filecheck %s --check-prefix=FORM
// RUN: not metadef-opt %s --split-input-file --fold-batch-norm 2>&1 | filecheck %s --check-prefix=FOLD
// RUN: not metadef-opt %s --split-input-file --lower-to-linalg 2>&1 | filecheck %s --check-prefix=LINALG

// A pass that fails on IR of another stage says what it takes, and what does not belong where.

// LLVM: error: 'func.func' op: kernel 'front': argument 0: expected a memref, got tensor<4xf32>; from loc("{{.*}}":14:1)
// LLVM-NEXT: while running pass 'lower-to-llvm'
// VECTORIZE: error: pass 'vectorize' takes {{.*}} on memrefs: 'func.func' op: expected no value of type tensor<4xf32>; from loc("{{.*}}":14:1)
// BUFFERIZE: error: pass 'bufferize' takes {{.*}} of linalg, tensor, scf ops: 'metadef.pointwise' op: expected only the dialects affine, {{.*}}; from loc("{{.*}}":15:8)
func.func @front(%x: tensor<4xf32>) -> tensor<4xf32> attributes {metadef.kernel} {
  %0 = "metadef.pointwise"(%x) {fn = "exp", operandSegmentSizes = array<i32: 1, 0, 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// FORM: error: pass 'form-kernels' takes metadef ops in one block of @main: 'func.func' op: expected no value of type memref<4xf32>
// FOLD: error: pass 'fold-batch-norm' takes metadef ops on tensors: 'func.func' op: expected no value of type memref<4xf32>
// LINALG: error: pass 'lower-to-linalg' takes {{.*}} of metadef ops on ranked tensors: 'func.func' op: expected no value of type memref<4xf32>
func.func @main(%x: memref<4xf32>, %i: index {metadef.symbol = "B"}) attributes {metadef.kernel} {
  %0 = arith.constant 0 : index
  %1 = memref.load %x[%0] : memref<4xf32>
  memref.store %1, %x[%i] : memref<4xf32>
  return
}

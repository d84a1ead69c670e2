// RUN: metadef-opt %s --split-input-file --verify-diagnostics --lower-to-llvm

// expected-error @+1 {{kernel 'one_index': expected the indices %tid and %nthreads, or neither, besides those with metadef.symbol, got 1}}
func.func @one_index(%x: memref<4xf32>, %tid: index) {
  return
}

// -----

// expected-error @+1 {{kernel 'no_dims': argument 0: expected metadef.dims with memref<?xf32>}}
func.func @no_dims(%x: memref<?xf32>) {
  return
}

// -----

// expected-error @+1 {{kernel 'a_number': argument 0: expected a memref, got f32}}
func.func @a_number(%x: f32) {
  return
}

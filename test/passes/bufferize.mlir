// RUN: metadef-opt %s --pass-pipeline='builtin.module(bufferize)' | filecheck %s

#id = affine_map<(d0) -> (d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>

// CHECK-LABEL: @writes_its_output
// CHECK-SAME: (%arg0: memref<4xf32>, %arg1: memref<4xf32> {bufferization.writable = true})
// CHECK-NOT: ->
// CHECK-NOT: memref.alloc
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : memref<4xf32>) outs(%arg1 : memref<4xf32>)
// CHECK: return{{$}}
func.func @writes_its_output(%x: tensor<4xf32> {bufferization.writable = false}, %out: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> attributes {metadef.kernel} {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%out : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @allocates_temporaries_by_symbol
// CHECK: %[[T:.*]] = memref.alloc(%arg2) {alignment = 64 : i64} : memref<?xf32>
// CHECK-NOT: memref.dealloc
func.func @allocates_temporaries_by_symbol(%x: tensor<?xf32> {bufferization.writable = false, metadef.dims = ["B"]}, %out: tensor<?xf32> {bufferization.writable = true, metadef.dims = ["B"]}, %B: index {metadef.symbol = "B"}) -> tensor<?xf32> attributes {metadef.kernel} {
  %t = tensor.empty(%B) : tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%t : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %2 = arith.negf %a : f32
    linalg.yield %2 : f32
  } -> tensor<?xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%0 : tensor<?xf32>) outs(%out : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %2 = math.exp %a : f32
    linalg.yield %2 : f32
  } -> tensor<?xf32>
  return %1 : tensor<?xf32>
}

// An output's slice is written in place.
// CHECK-LABEL: @writes_into_a_slice
// CHECK-NOT: memref.alloc
// CHECK: %[[S:.*]] = memref.subview %arg1[0, 2] [4, 3] [1, 1]
// CHECK: outs(%[[S]]
// CHECK-NOT: memref.copy
func.func @writes_into_a_slice(%x: tensor<4x3xf32> {bufferization.writable = false}, %out: tensor<4x8xf32> {bufferization.writable = true}) -> tensor<4x8xf32> attributes {metadef.kernel} {
  %s = tensor.extract_slice %out[0, 2] [4, 3] [1, 1] : tensor<4x8xf32> to tensor<4x3xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<4x3xf32>) outs(%s : tensor<4x3xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<4x3xf32>
  %r = tensor.insert_slice %0 into %out[0, 2] [4, 3] [1, 1] : tensor<4x3xf32> into tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}

// An input is never written: what would write it gets a copy, by a generic.
// CHECK-LABEL: @copies_an_input_that_would_be_written
// CHECK: %[[T:.*]] = memref.alloc()
// CHECK-NOT: memref.copy
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : memref<4xf32>) outs(%[[T]] : memref<4xf32>)
// CHECK: memref.store %{{.*}}, %[[T]]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[T]] : memref<4xf32>) outs(%arg1 : memref<4xf32>)
func.func @copies_an_input_that_would_be_written(%x: tensor<4xf32> {bufferization.writable = false}, %out: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> attributes {metadef.kernel} {
  %c1 = arith.constant 1 : index
  %f = arith.constant 1.0 : f32
  %0 = tensor.insert %f into %x[%c1] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A result that is a view of its output needs no copy.
// CHECK-LABEL: @returns_a_view_of_its_output
// CHECK: memref.expand_shape %arg1
// CHECK-COUNT-1: linalg.generic
// CHECK-NOT: linalg.generic
func.func @returns_a_view_of_its_output(%x: tensor<2x4xf32> {bufferization.writable = false}, %out: tensor<8xf32> {bufferization.writable = true}) -> tensor<8xf32> attributes {metadef.kernel} {
  %v = tensor.expand_shape %out [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
  %0 = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<2x4xf32>) outs(%v : tensor<2x4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %1 = arith.negf %a : f32
    linalg.yield %1 : f32
  } -> tensor<2x4xf32>
  %r = tensor.collapse_shape %0 [[0, 1]] : tensor<2x4xf32> into tensor<8xf32>
  return %r : tensor<8xf32>
}

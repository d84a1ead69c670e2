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

// Slices of one tensor are written in place, each by its own op; one that was computed elsewhere
// is copied, and the last of overlapping ones stays last.
// CHECK-LABEL: @writes_slices_of_one_tensor
// CHECK: %[[T:.*]] = memref.alloc
// CHECK: outs(%[[T]]
// CHECK: %[[S0:.*]] = memref.subview %arg2[0] [%arg3] [1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : memref<?xf32>) outs(%[[S0]] :
// CHECK: %[[S1:.*]] = memref.subview %arg2[%arg3] [4] [2] : memref<?xf32> to memref<4xf32, strided<[2], offset: ?>>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[T]] : memref<4xf32>) outs(%[[S1]] :
// CHECK-NOT: memref.copy
// CHECK: return
func.func @writes_slices_of_one_tensor(%x: tensor<?xf32> {bufferization.writable = false}, %y: tensor<4xf32> {bufferization.writable = false}, %out: tensor<?xf32> {bufferization.writable = true}, %B: index {metadef.symbol = "B"}) -> tensor<?xf32> attributes {metadef.kernel} {
  %e = tensor.empty() : tensor<4xf32>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%y : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %o: f32):
    %5 = math.exp %a : f32
    linalg.yield %5 : f32
  } -> tensor<4xf32>
  %s = tensor.extract_slice %out[0] [%B] [1] : tensor<?xf32> to tensor<?xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<?xf32>) outs(%s : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %5 = arith.negf %a : f32
    linalg.yield %5 : f32
  } -> tensor<?xf32>
  %2 = tensor.insert_slice %0 into %out[0] [%B] [1] : tensor<?xf32> into tensor<?xf32>
  %3 = tensor.insert_slice %1 into %2[%B] [4] [2] : tensor<4xf32> into tensor<?xf32>
  return %3 : tensor<?xf32>
}

// What reads the tensor between two writes sees the first alone.
// CHECK-LABEL: @keeps_what_is_read_between_writes
// CHECK: %[[S0:.*]] = memref.subview %arg1[0] [2] [1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0 : memref<2xf32>) outs(%[[S0]] :
// CHECK: %[[T:.*]] = memref.alloc
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[S0]] : {{.*}}) outs(%[[T]]
// CHECK: %[[S1:.*]] = memref.subview %arg1[2] [2] [1]
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[T]] : memref<2xf32>) outs(%[[S1]] :
func.func @keeps_what_is_read_between_writes(%x: tensor<2xf32> {bufferization.writable = false}, %out: tensor<4xf32> {bufferization.writable = true}) -> tensor<4xf32> attributes {metadef.kernel} {
  %0 = tensor.insert_slice %x into %out[0] [2] [1] : tensor<2xf32> into tensor<4xf32>
  %s = tensor.extract_slice %0[0] [2] [1] : tensor<4xf32> to tensor<2xf32>
  %e = tensor.empty() : tensor<2xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%s : tensor<2xf32>) outs(%e : tensor<2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %5 = arith.negf %a : f32
    linalg.yield %5 : f32
  } -> tensor<2xf32>
  %1 = tensor.insert_slice %n into %0[2] [2] [1] : tensor<2xf32> into tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Where rows have a dynamic length, an offset of 0 rows is still 0.
// CHECK-LABEL: @writes_slices_of_dynamic_rows
// CHECK: memref.subview %arg2[0, 0] [2, %arg3] [1, 1] : memref<?x?xf32> to memref<2x?xf32, strided<[?, 1]>>
// CHECK: memref.subview %arg2[2, 0] [2, %arg3] [1, 1] : memref<?x?xf32> to memref<2x?xf32, strided<[?, 1], offset: ?>>
func.func @writes_slices_of_dynamic_rows(%x: tensor<2x?xf32> {bufferization.writable = false}, %y: tensor<2x?xf32> {bufferization.writable = false}, %out: tensor<?x?xf32> {bufferization.writable = true}, %B: index {metadef.symbol = "B"}) -> tensor<?x?xf32> attributes {metadef.kernel} {
  %0 = tensor.insert_slice %x into %out[0, 0] [2, %B] [1, 1] : tensor<2x?xf32> into tensor<?x?xf32>
  %1 = tensor.insert_slice %y into %0[2, 0] [2, %B] [1, 1] : tensor<2x?xf32> into tensor<?x?xf32>
  return %1 : tensor<?x?xf32>
}

// An op that writes several slices of a tensor writes them where they are.
// CHECK-LABEL: func.func @writes_slices_side_by_side
// CHECK-SAME: %[[X:.*]]: memref<4xf32>, %[[OUT:.*]]: memref<8xf32>
// CHECK-NOT: memref.alloc
// CHECK-DAG: %[[EVEN:.*]] = memref.subview %[[OUT]][0] [4] [2]
// CHECK-DAG: %[[ODD:.*]] = memref.subview %[[OUT]][1] [4] [2]
// CHECK: linalg.generic {{.*}} ins(%[[X]] : {{.*}}) outs(%[[EVEN]], %[[ODD]]
// CHECK-NOT: linalg.generic
// CHECK: return
func.func @writes_slices_side_by_side(%x: tensor<4xf32> {bufferization.writable = false}, %out: tensor<8xf32> {bufferization.writable = true}) -> tensor<8xf32> attributes {metadef.kernel} {
  %a = tensor.extract_slice %out[0] [4] [2] : tensor<8xf32> to tensor<4xf32>
  %b = tensor.extract_slice %out[1] [4] [2] : tensor<8xf32> to tensor<4xf32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%a, %b : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %c: f32, %d: f32):
    %1 = arith.negf %in : f32
    linalg.yield %in, %1 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  %2 = tensor.insert_slice %0#0 into %out[0] [4] [2] : tensor<4xf32> into tensor<8xf32>
  %3 = tensor.insert_slice %0#1 into %2[1] [4] [2] : tensor<4xf32> into tensor<8xf32>
  return %3 : tensor<8xf32>
}

// Slices that overlap are made one after the other, so that the later one wins.
// CHECK-LABEL: func.func @overlapping_slices_are_copied
// CHECK: memref.alloc
func.func @overlapping_slices_are_copied(%x: tensor<4xf32> {bufferization.writable = false}, %out: tensor<8xf32> {bufferization.writable = true}) -> tensor<8xf32> attributes {metadef.kernel} {
  %a = tensor.extract_slice %out[0] [4] [2] : tensor<8xf32> to tensor<4xf32>
  %b = tensor.extract_slice %out[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %0:2 = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%a, %b : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%in: f32, %c: f32, %d: f32):
    %1 = arith.negf %in : f32
    linalg.yield %in, %1 : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  %2 = tensor.insert_slice %0#0 into %out[0] [4] [2] : tensor<4xf32> into tensor<8xf32>
  %3 = tensor.insert_slice %0#1 into %2[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %3 : tensor<8xf32>
}

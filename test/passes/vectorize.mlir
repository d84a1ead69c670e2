// RUN: metadef-opt %s --pass-pipeline='builtin.module(vectorize,canonicalize,cse)' --split-input-file | filecheck %s

#id = affine_map<(d0, d1) -> (d0, d1)>

// A product of weights in panels: rows by two vectors in registers, one fused multiply-add a cell,
// and the epilogue on the registers; the temporary is gone.
// CHECK-LABEL: func.func @product_with_epilogue
// CHECK-SAME: %[[TID:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index, %{{.*}}: memref<?xi8> {metadef.scratch}, %{{.*}}: memref<?xi8> {metadef.thread_scratch}
// CHECK-SAME: metadef.scratch = "0"
// CHECK-NOT: memref.alloc
// CHECK: arith.muli %[[TID]]
// CHECK: arith.divui %{{.*}}, %[[COUNT]]
// CHECK: scf.for
// CHECK: scf.for {{.*}} iter_args
// CHECK: memref.load
// CHECK: vector.load {{.*}} vector<{{[0-9]+}}xf32>
// CHECK: math.fma {{.*}} vector<{{[0-9]+}}xf32>
// CHECK: scf.yield
// CHECK: arith.maximumf {{.*}} vector<{{[0-9]+}}xf32>
// CHECK: vector.store
func.func @product_with_epilogue(%x: memref<8x64xf32>, %w: memref<2x64x32xf32>, %y: memref<8x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %t = memref.alloc() : memref<8x64xf32>
  linalg.fill ins(%zero : f32) outs(%t : memref<8x64xf32>)
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<8x64xf32>, memref<2x64x32xf32>) outs(%t : memref<8x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : memref<8x64xf32>) outs(%y : memref<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.maximumf %a, %zero : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>

// The maximum of a row and its use share the row's loop: what they hand over is a scalar's tile.
// CHECK-LABEL: func.func @rows_share_one_nest
// CHECK: memref.alloca() {{.*}} memref<1xf32>
// CHECK: scf.for
// CHECK: arith.maximumf {{.*}} vector<{{[0-9]+}}xf32>
// CHECK: vector.extract
// CHECK: arith.subf {{.*}} vector<{{[0-9]+}}xf32>
// CHECK-NOT: metadef_barrier
// CHECK: return
func.func @rows_share_one_nest(%x: memref<32x64xf32>, %y: memref<32x64xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %m = memref.alloc() : memref<32xf32>
  linalg.fill ins(%lowest : f32) outs(%m : memref<32xf32>)
  linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : memref<32x64xf32>) outs(%m : memref<32xf32>) {
  ^bb0(%a: f32, %c: f32):
    %r = arith.maximumf %a, %c : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : memref<32x64xf32>, memref<32xf32>) outs(%y : memref<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0, d1) -> (d0, d1)>
#none = affine_map<(d0, d1) -> ()>

// A maximum of all is complete before anybody reads it: threads wait.
// CHECK: func.func private @metadef_barrier()
// CHECK-LABEL: func.func @waits_between_nests
// CHECK-SAME: metadef.scratch = "64"
// CHECK: memref.view
// CHECK: call @metadef_barrier()
func.func @waits_between_nests(%x: memref<32x64xf32>, %y: memref<32x64xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %m = memref.alloc() : memref<f32>
  linalg.fill ins(%lowest : f32) outs(%m : memref<f32>)
  linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction", "reduction"]} ins(%x : memref<32x64xf32>) outs(%m : memref<f32>) {
  ^bb0(%a: f32, %c: f32):
    %r = arith.maximumf %a, %c : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#id, #none, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %m : memref<32x64xf32>, memref<f32>) outs(%y : memref<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %r = arith.subf %a, %b : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @masks_the_tail_of_a_symbolic_dim
// CHECK: vector.create_mask
// CHECK: vector.maskedload
// CHECK: vector.maskedstore
func.func @masks_the_tail_of_a_symbolic_dim(%x: memref<?xf32> {metadef.dims = ["B"]}, %y: memref<?xf32> {metadef.dims = ["B"]}, %b: index {metadef.symbol = "B"}) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : memref<?xf32>) outs(%y : memref<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %r = arith.negf %a : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id = affine_map<(d0) -> (d0)>

// An integer division by zero would trap in an idle lane: scalar code.
// CHECK-LABEL: func.func @does_not_vectorize_integer_division
// CHECK-NOT: vector
// CHECK: arith.divsi {{.*}} : i32
// CHECK: return
func.func @does_not_vectorize_integer_division(%x: memref<64xi32>, %y: memref<64xi32>) {
  linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"]} ins(%x, %x : memref<64xi32>, memref<64xi32>) outs(%y : memref<64xi32>) {
  ^bb0(%a: i32, %b: i32, %o: i32):
    %r = arith.divsi %a, %b : i32
    linalg.yield %r : i32
  }
  return
}

// -----

#id = affine_map<() -> ()>

// What is no run of structured ops is for one thread.
// CHECK-LABEL: func.func @serial_around_a_sequential_loop
// CHECK-SAME: metadef.scalar_loops, metadef.serial
func.func @serial_around_a_sequential_loop(%x: memref<64xf32>, %y: memref<f32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    %v = memref.load %x[%i] : memref<64xf32>
    memref.store %v, %y[] : memref<f32>
  }
  return
}

// -----

#id2 = affine_map<(d0, d1) -> (d0, d1)>

// Turns that need no others are shared out; what one allocates is each thread's own.
// CHECK-LABEL: func.func @shares_out_rows
// CHECK-SAME: %[[TID:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index
// CHECK-SAME: metadef.thread_scratch = 256
// CHECK-NOT: metadef_barrier
// CHECK: %[[DONE:.*]] = arith.muli %[[TID]], %{{.*}}
// CHECK: %[[LOWER:.*]] = arith.divui %[[DONE]], %[[COUNT]]
// CHECK: scf.for %{{.*}} = %[[LOWER]] to
// CHECK-NOT: memref.alloc
func.func @shares_out_rows(%x: memref<8x64xf32>, %y: memref<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %row = memref.alloc() : memref<64xf32>
    %v = memref.load %x[%i, %c1] : memref<8x64xf32>
    memref.store %v, %row[%i] : memref<64xf32>
    %w = memref.load %row[%i] : memref<64xf32>
    memref.store %w, %y[%i, %c0] : memref<8x64xf32>
  } {metadef.parallel}
  return
}

// -----

#id2 = affine_map<(d0, d1) -> (d0, d1)>

// Beside a nest a sequential loop is for thread 0, after what it depends on.
// CHECK-LABEL: func.func @has_thread_0_run_a_sequential_loop
// CHECK-NOT: metadef.serial
// CHECK: vector.store
// CHECK: call @metadef_barrier
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %{{.*}}, %c0
// CHECK: scf.if %[[FIRST]]
// CHECK-NEXT: scf.for
func.func @has_thread_0_run_a_sequential_loop(%x: memref<8x64xf32>, %y: memref<8x64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  scf.for %i = %c0 to %c8 step %c1 {
    %v = memref.load %y[%i, %c0] : memref<8x64xf32>
    memref.store %v, %y[%c0, %i] : memref<8x64xf32>
  }
  return
}

// -----

#id2 = affine_map<(d0, d1) -> (d0, d1)>

// Sixty-four rows are four tasks, not as many as rows.
// CHECK-LABEL: func.func @several_short_rows_are_a_task
// CHECK: scf.for %[[TASK:[a-z0-9]+]] =
// CHECK: %[[FIRST:.*]] = arith.muli %[[TASK]], %c16
// CHECK: scf.for %{{.*}} = %[[FIRST]] to
// CHECK: scf.for %{{.*}} = %c0 to %c48 step %c16
func.func @several_short_rows_are_a_task(%x: memref<64x48xf32>, %y: memref<64x48xf32>) {
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x48xf32>) outs(%y : memref<64x48xf32>) {
  ^bb0(%a: f32, %o: f32):
    %row = linalg.index 0 : index
    %i = arith.index_cast %row : index to i32
    %f = arith.sitofp %i : i32 to f32
    %r = arith.addf %a, %f : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#id2 = affine_map<(d0, d1) -> (d0, d1)>
#one = affine_map<(d0, d1) -> (0)>

// What is the same in all lanes may be wider than they are.
// CHECK-LABEL: func.func @keeps_the_width_beside_a_wider_scalar
// CHECK: vector.load {{.*}} vector<16xf32>
func.func @keeps_the_width_beside_a_wider_scalar(%x: memref<8x64xf32>, %at: memref<1xi64>, %y: memref<8x64xf32>) {
  linalg.generic {indexing_maps = [#id2, #one, #id2], iterator_types = ["parallel", "parallel"]} ins(%x, %at : memref<8x64xf32>, memref<1xi64>) outs(%y : memref<8x64xf32>) {
  ^bb0(%a: f32, %i: i64, %o: f32):
    %row = linalg.index 0 : index
    %place = arith.index_cast %i : i64 to index
    %here = arith.cmpi eq, %row, %place : index
    %n = arith.negf %a : f32
    %r = arith.select %here, %n, %a : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#source = affine_map<(d0, d1) -> (d1, d0)>
#id2 = affine_map<(d0, d1) -> (d0, d1)>

// A transposing copy loads square tiles by rows and turns them around in registers.
// CHECK-LABEL: func.func @transposes_tiles_in_registers
// CHECK-COUNT-16: vector.load {{.*}} vector<16xf32>
// CHECK-COUNT-64: vector.shuffle
// CHECK-COUNT-16: vector.store {{.*}} vector<16xf32>
func.func @transposes_tiles_in_registers(%x: memref<64x128xf32>, %y: memref<128x64xf32>) {
  linalg.generic {indexing_maps = [#source, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x128xf32>) outs(%y : memref<128x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#id2 = affine_map<(d0, d1) -> (d0, d1)>

// An output that outgrows the last cache level is stored past it; a small one is not.
// CHECK-LABEL: func.func @streams_large_outputs
// CHECK: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true}
// CHECK-LABEL: func.func @keeps_small_outputs
// CHECK-NOT: nontemporal
func.func @streams_large_outputs(%x: memref<4096x1024xf32>, %y: memref<4096x1024xf32>) {
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : memref<4096x1024xf32>) outs(%y : memref<4096x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }
  return
}
func.func @keeps_small_outputs(%x: memref<64x1024xf32>, %y: memref<64x1024xf32>) {
  linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]} ins(%x : memref<64x1024xf32>) outs(%y : memref<64x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %a : f32
    linalg.yield %s : f32
  }
  return
}

// -----

#id3 = affine_map<(d0, d1) -> (d0, d1)>
#windows = affine_map<(d0, d1, d2) -> (d0 + d2, d1)>
#taps = affine_map<(d0, d1, d2) -> (d2, d1)>
#sums = affine_map<(d0, d1, d2) -> (d0, d1)>

// Padding is not made: the taps beside the input are left out, here one of the first row and one
// of the last.
// CHECK-LABEL: func.func @reads_no_padding
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.view
// CHECK-COUNT-7: math.fma
// CHECK-NOT: math.fma
func.func @reads_no_padding(%x: memref<3x16xf32>, %w: memref<3x16xf32>, %y: memref<3x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<5x16xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<5x16xf32>)
  %i = memref.subview %a[1, 0] [3, 16] [1, 1] : memref<5x16xf32> to memref<3x16xf32, strided<[16, 1], offset: 16>>
  linalg.generic {indexing_maps = [#id3, #id3], iterator_types = ["parallel", "parallel"]} ins(%x : memref<3x16xf32>) outs(%i : memref<3x16xf32, strided<[16, 1], offset: 16>>) {
  ^bb0(%s: f32, %o: f32):
    linalg.yield %s : f32
  }
  linalg.fill ins(%zero : f32) outs(%y : memref<3x16xf32>)
  linalg.generic {indexing_maps = [#windows, #taps, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%a, %w : memref<5x16xf32>, memref<3x16xf32>) outs(%y : memref<3x16xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %p = arith.mulf %s, %t : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }
  return
}

// -----

#every_other = affine_map<(d0, d1, d2) -> (d0, d1 * 2 + d2)>
#taps = affine_map<(d0, d1, d2) -> (d0, d2)>
#sums = affine_map<(d0, d1, d2) -> (d0, d1)>

// Lanes two apart: each row is copied, what is even and what is odd of it, and taps read the copy.
// CHECK-LABEL: func.func @strided_windows_are_read_from_a_tile
// CHECK: %[[TILE:.*]] = memref.alloca
// CHECK: vector.shuffle {{.*}} [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30]
// CHECK: vector.shuffle {{.*}} [1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31]
// CHECK-NOT: vector.shuffle
// CHECK: math.fma
func.func @strided_windows_are_read_from_a_tile(%x: memref<40x64xf32>, %w: memref<40x2xf32>, %y: memref<40x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<40x32xf32>)
  linalg.generic {indexing_maps = [#every_other, #taps, #sums], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<40x64xf32>, memref<40x2xf32>) outs(%y : memref<40x32xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %p = arith.mulf %s, %t : f32
    %r = arith.addf %o, %p : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// The last of two boxes has fewer rows, in fewer blocks: the same code does for all.
// CHECK-LABEL: func.func @boxes_with_fewer_blocks_share_their_code
// CHECK: scf.for
// CHECK-NOT: scf.if
// CHECK: arith.minsi %{{.*}}, %c289
// CHECK-NOT: scf.if
// CHECK: scf.for %{{.*}} step %c14
// CHECK: scf.for %{{.*}} step %c13
// CHECK-NOT: scf.for %{{.*}} step %c14
// CHECK: return
func.func @boxes_with_fewer_blocks_share_their_code(
    %x: memref<577x64xf32>, %w: memref<64x32xf32>, %y: memref<577x32xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<577x32xf32>)
  linalg.matmul ins(%x, %w : memref<577x64xf32>, memref<64x32xf32>) outs(%y : memref<577x32xf32>)
  return
}

// -----

#all = affine_map<(d0, d1) -> (d0, d1)>
#column = affine_map<(d0, d1) -> (d1)>
#line = affine_map<(d0) -> (d0)>

// The last vector of 20 sums reaches back to be whole: some are computed twice.
// CHECK-LABEL: func.func @last_vector_reaches_back
// CHECK-NOT: masked
// CHECK: return
func.func @last_vector_reaches_back(%x: memref<30x20xf32>, %y: memref<20xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<20xf32>)
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<30x20xf32>) outs(%y : memref<20xf32>) {
  ^bb0(%s: f32, %o: f32):
    %r = arith.addf %o, %s : f32
    linalg.yield %r : f32
  }
  return
}

// Not where it would start from what was stored the first time.
// CHECK-LABEL: func.func @no_sum_is_added_twice
// CHECK: vector.maskedstore
func.func @no_sum_is_added_twice(%x: memref<30x20xf32>, %y: memref<20xf32>) {
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<30x20xf32>) outs(%y : memref<20xf32>) {
  ^bb0(%s: f32, %o: f32):
    %r = arith.addf %o, %s : f32
    linalg.yield %r : f32
  }
  return
}

// Nor where it would read it: a result may be in the memory of what is added to it.
// CHECK-LABEL: func.func @no_residual_is_added_twice
// CHECK: vector.maskedstore
func.func @no_residual_is_added_twice(%x: memref<30x20xf32>, %z: memref<20xf32>, %y: memref<20xf32>) {
  %zero = arith.constant 0.0 : f32
  %a = memref.alloc() : memref<20xf32>
  linalg.fill ins(%zero : f32) outs(%a : memref<20xf32>)
  linalg.generic {indexing_maps = [#all, #column], iterator_types = ["reduction", "parallel"]} ins(%x : memref<30x20xf32>) outs(%a : memref<20xf32>) {
  ^bb0(%s: f32, %o: f32):
    %r = arith.addf %o, %s : f32
    linalg.yield %r : f32
  }
  linalg.generic {indexing_maps = [#line, #line, #line], iterator_types = ["parallel"]} ins(%a, %z : memref<20xf32>, memref<20xf32>) outs(%y : memref<20xf32>) {
  ^bb0(%s: f32, %t: f32, %o: f32):
    %r = arith.addf %s, %t : f32
    linalg.yield %r : f32
  }
  return
}

// -----

// A long loop: a thread takes tasks of its share from a counter, and then of the others' shares.
// Sums of products are noted.
// CHECK-LABEL: func.func @takes_tasks
// CHECK-SAME: %[[TID:[a-z0-9]+]]: index, %[[COUNT:[a-z0-9]+]]: index, %[[TICKETS:[a-z0-9]+]]: memref<?xi64> {metadef.tickets}
// CHECK-SAME: metadef.products
// CHECK-SAME: metadef.tickets = 1 : i64
// CHECK: scf.for %[[TURN:.*]] = %{{.*}} to %[[COUNT]]
// CHECK: %[[SUM:.*]] = arith.addi %[[TID]], %[[TURN]]
// CHECK: arith.remui %[[SUM]], %[[COUNT]]
// CHECK: scf.while
// CHECK: memref.atomic_rmw addi %{{.*}}, %[[TICKETS]]
// CHECK: scf.condition
// CHECK: math.fma
func.func @takes_tasks(%x: memref<128x64xf32>, %w: memref<64x128xf32>, %y: memref<128x128xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<128x128xf32>)
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<128x64xf32>, memref<64x128xf32>) outs(%y : memref<128x128xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

// -----

// Narrow weights: whole vectors of lanes are loaded, and widened in registers.
// CHECK-LABEL: func.func @narrow_weights
// CHECK: memref.load
// CHECK: %[[W:.*]] = vector.load {{.*}} vector<16xbf16>
// CHECK: %[[F:.*]] = arith.extf %[[W]] : vector<16xbf16> to vector<16xf32>
// CHECK: math.fma %{{.*}}, %[[F]], %{{.*}} : vector<16xf32>
func.func @narrow_weights(%x: memref<1x64xf32>, %w: memref<2x64x32xbf16>, %y: memref<1x64xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<1x64xf32>)
  linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %w : memref<1x64xf32>, memref<2x64x32xbf16>) outs(%y : memref<1x64xf32>) {
  ^bb0(%a: f32, %b: bf16, %c: f32):
    %e = arith.extf %b : bf16 to f32
    %p = arith.mulf %a, %e : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }
  return
}

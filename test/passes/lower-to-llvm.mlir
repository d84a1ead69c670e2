// RUN: metadef-opt %s --split-input-file --pass-pipeline='builtin.module(lower-to-llvm)' | filecheck %s

// The exported function loads pointers and symbols; the body has the code.
// CHECK-LABEL: llvm.func @scale(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr, %arg3: i64, %arg4: i64, %arg5: !llvm.ptr)
// CHECK-SAME:    metadef.symbols = ["S", "B"]
// CHECK:         [[X:%.*]] = llvm.load %arg0 : !llvm.ptr -> !llvm.ptr
// CHECK:         [[AT:%.*]] = llvm.getelementptr %arg0[1]
// CHECK:         [[Y:%.*]] = llvm.load [[AT]]
// CHECK:         [[S:%.*]] = llvm.load %arg1 : !llvm.ptr -> i64
// CHECK:         [[SECOND:%.*]] = llvm.getelementptr %arg1[1]
// CHECK:         [[B:%.*]] = llvm.load [[SECOND]]
// CHECK:         llvm.call @scale_body([[X]], [[Y]], [[S]], [[B]], %arg3, %arg4)
// CHECK-LABEL: llvm.func internal @scale_body(
// Spilled vectors lie in one cache line, wherever the caller's frame ends.
// CHECK-SAME:    passthrough = ["stackrealign"]
// The row stride of [B, S + 1] is S + 1.
// CHECK:         [[ONE:%.*]] = llvm.mlir.constant(1 : index) : i64
// CHECK:         [[STRIDE:%.*]] = llvm.add %arg2, [[ONE]]
// CHECK:         llvm.mul {{.*}}, [[STRIDE]]
// CHECK:         llvm.fmul
// CHECK-NOT:     fastmathFlags
func.func @scale(%x: memref<?x?xf32> {metadef.dims = ["B", "S + 1"]},
                 %y: memref<?x?xf32> {metadef.dims = ["B", "S + 1"]},
                 %S: index {metadef.symbol = "S"}, %B: index {metadef.symbol = "B"},
                 %tid: index, %n: index) attributes {metadef.kernel} {
  %v = memref.load %x[%tid, %n] : memref<?x?xf32>
  %w = arith.mulf %v, %v : f32
  memref.store %w, %y[%tid, %n] : memref<?x?xf32>
  return
}

// -----

// Outputs alias nothing where the kernel says so and no other thread writes meanwhile.
// CHECK-LABEL: llvm.func internal @claims_body(
// CHECK-SAME:    %arg0: !llvm.ptr, %arg1: !llvm.ptr {llvm.noalias}
func.func @claims(%x: memref<4xf32>, %y: memref<4xf32> {bufferization.writable = true},
                  %tid: index, %n: index) attributes {metadef.noalias} {
  %v = memref.load %x[%tid] : memref<4xf32>
  memref.store %v, %y[%tid] : memref<4xf32>
  return
}

// -----

// CHECK-LABEL: llvm.func internal @in_place_body(
// CHECK-NOT:     llvm.noalias
func.func @in_place(%x: memref<4xf32>, %y: memref<4xf32> {bufferization.writable = true},
                    %tid: index, %n: index) {
  %v = memref.load %x[%tid] : memref<4xf32>
  memref.store %v, %y[%tid] : memref<4xf32>
  return
}

// -----

// A barrier is skipped by a lone thread; outputs beside it do not claim noalias.
// CHECK:       llvm.func @GOMP_barrier()
// CHECK-LABEL: llvm.func internal @waits_body(
// CHECK-NOT:     llvm.noalias
// CHECK:         [[SEVERAL:%.*]] = llvm.icmp "ugt" %arg3, {{.*}} : i64
// CHECK:         llvm.cond_br [[SEVERAL]]
// CHECK:         llvm.call @GOMP_barrier() : () -> ()
func.func private @metadef_barrier()
func.func @waits(%x: memref<4xf32>, %y: memref<4xf32> {bufferization.writable = true},
                 %tid: index, %n: index) attributes {metadef.noalias} {
  func.call @metadef_barrier() : () -> ()
  return
}

// -----

// Scratch memory is no argument of args; a thread's own part follows the shared one (aligned).
// CHECK-LABEL: llvm.func @scratch(
// CHECK-SAME:    metadef.scratch = "4*B", metadef.serial, metadef.symbols = ["B"], metadef.thread_scratch = 100 : i64
// CHECK:         [[STRIDE:%.*]] = llvm.mlir.constant(128 : i64)
// CHECK:         [[X:%.*]] = llvm.load %arg0
// CHECK:         [[OFFSET:%.*]] = llvm.mul %arg3, [[STRIDE]]
// CHECK:         [[END:%.*]] = llvm.add {{.*}}, [[OFFSET]]
// CHECK:         [[OWN:%.*]] = llvm.getelementptr %arg2{{\[}}[[END]]{{\]}} : (!llvm.ptr, i64) -> !llvm.ptr, i8
// CHECK:         llvm.call @scratch_body([[X]], {{.*}}, %arg2, [[OWN]], %arg3, %arg4)
func.func @scratch(%x: memref<4xf32>, %B: index {metadef.symbol = "B"},
                   %shared: memref<?xi8> {metadef.scratch},
                   %own: memref<?xi8> {metadef.thread_scratch}, %tid: index, %n: index)
    attributes {metadef.scratch = "4*B", metadef.thread_scratch = 100 : i64, metadef.serial} {
  %c0 = arith.constant 0 : index
  %v = memref.load %own[%c0] : memref<?xi8>
  memref.store %v, %shared[%c0] : memref<?xi8>
  return
}

// -----

// Whatever a function allocates is aligned and freed; a strided copy becomes loops.
// CHECK-LABEL: llvm.func internal @temporary_body(
// CHECK:         llvm.call @malloc
// CHECK-NOT:     memrefCopy
// CHECK:         llvm.call @free
func.func @temporary(%x: memref<4x4xf32>) attributes {metadef.serial} {
  %t = memref.alloc() : memref<4xf32>
  %column = memref.subview %x[0, 1] [4, 1] [1, 1]
      : memref<4x4xf32> to memref<4xf32, strided<[4], offset: 1>>
  memref.copy %column, %t : memref<4xf32, strided<[4], offset: 1>> to memref<4xf32>
  %c0 = arith.constant 0 : index
  %v = memref.load %t[%c0] : memref<4xf32>
  memref.store %v, %x[%c0, %c0] : memref<4x4xf32>
  return
}

// -----

// Half floats meet f64 and integers by way of f32, as in torch; bf16 needs no library call.
// CHECK-LABEL: llvm.func internal @halves_body(
// CHECK:         llvm.fptrunc {{.*}} : f64 to f32
// CHECK:         llvm.fptrunc {{.*}} : f32 to f16
// CHECK:         llvm.sitofp {{.*}} : i64 to f32
// CHECK:         llvm.fptosi {{.*}} : f32 to i64
// CHECK-NOT:     bf16
func.func @halves(%d: memref<f64>, %h: memref<f16>, %b: memref<bf16>, %i: memref<i64>) {
  %0 = memref.load %d[] : memref<f64>
  %1 = arith.truncf %0 : f64 to f16
  memref.store %1, %h[] : memref<f16>
  %2 = memref.load %i[] : memref<i64>
  %3 = arith.sitofp %2 : i64 to f16
  %4 = arith.addf %3, %1 : f16
  %5 = arith.fptosi %4 : f16 to i64
  memref.store %5, %i[] : memref<i64>
  return
}

// -----

// What threads take their work from is an argument of its own.
// CHECK-LABEL: llvm.func @tickets(
// CHECK-SAME:    metadef.tickets = 1 : i64
// CHECK:         llvm.call @tickets_body(%arg3, %arg4, %arg5)
// CHECK:         llvm.atomicrmw add
func.func @tickets(%tid: index, %n: index, %words: memref<?xi64> {metadef.tickets})
    attributes {metadef.tickets = 1 : i64} {
  %one = arith.constant 1 : i64
  %0 = memref.atomic_rmw addi %one, %words[%tid] : (i64, memref<?xi64>) -> i64
  return
}

// -----

// Elements of bf16 go into a vector, and to memory under a mask, as integers.
// CHECK-LABEL: llvm.func internal @halves_body(
// CHECK-NOT:     llvm.insertelement {{.*}}bf16
// CHECK:         llvm.insertelement {{.*}} : vector<2xi16>
// CHECK:         llvm.intr.masked.store {{.*}} : vector<2xi16>, vector<2xi1> into !llvm.ptr
func.func @halves(%x: memref<4xbf16>, %y: memref<4xbf16>, %tid: index, %n: index) {
  %c0 = arith.constant 0 : index
  %c3 = arith.constant 3 : index
  %a = memref.load %x[%c0] : memref<4xbf16>
  %b = memref.load %x[%c3] : memref<4xbf16>
  %v = vector.from_elements %a, %b : vector<2xbf16>
  %mask = vector.create_mask %n : vector<2xi1>
  vector.maskedstore %y[%tid], %mask, %v : memref<4xbf16>, vector<2xi1>, vector<2xbf16>
  return
}

"""Micro-benchmarks of memory, which go over `S` elements, each thread a part; and of threads."""

from __future__ import annotations

from metadef.device.spec import DeviceSpec

from .kernel_text import (
    REPEATS,
    SINK,
    Kernel,
    kernel_of,
    lanes,
    loop,
    names,
    sink_of,
    store_sum,
    vector_of,
)

#: vectors in flight in the body of a loop over memory
_UNROLL = 8
_OVER_S = '%{}: memref<?xf32> {{metadef.dims = ["S"]}}'
_PART = """%part = arith.divui %S, %n : index
%first = arith.muli %tid, %part : index
%last = arith.addi %first, %part : index"""


def grain(spec: DeviceSpec) -> int:
    """Return what the f32 elements of each thread must be a multiple of."""
    return _UNROLL * lanes(spec, "f32")


def read(spec: DeviceSpec) -> Kernel:
    """Sum up the thread's part of x, in independent sums."""
    vector = vector_of(spec, "f32")
    lines = _places(spec)
    for i in range(_UNROLL):
        lines.append(f"%v{i} = vector.load %x[%at{i}] : memref<?xf32>, {vector}")
        lines.append(f"%next{i} = arith.addf %sum{i}, %v{i} : {vector}")
    sums = {f"%sum{i}": f"%acc{i}" for i in range(_UNROLL)}
    next_sums = names("%next", _UNROLL)
    over_part = loop("%at0", "%first to %last step %step", lines, sums, next_sums, vector, "%inner")
    zeros = {f"%acc{i}": "%zero" for i in range(_UNROLL)}
    body = [
        _PART,
        f"%step = arith.constant {grain(spec)} : index",
        f"%zero = arith.constant dense<0.0> : {vector}",
        *loop("%r", REPEATS, over_part, zeros, names("%inner#", _UNROLL), vector, "%made"),
        *store_sum("%made", _UNROLL, vector, "f32"),
    ]
    return kernel_of("read", body, [_OVER_S.format("x"), sink_of("f32")], "S")


def copy(spec: DeviceSpec, *, streaming: bool = False) -> Kernel:
    """Copy the thread's part of x to y; `streaming` stores go past the caches."""
    vector = vector_of(spec, "f32")
    hint = f" {{nontemporal = true, alignment = {4 * lanes(spec, 'f32')} : i64}}" * streaming
    to = f"memref<?xf32>, {vector}"
    lines = [
        *_places(spec),
        *(f"%v{i} = vector.load %x[%at{i}] : {to}" for i in range(_UNROLL)),
        *(f"vector.store %v{i}, %y[%at{i}]{hint} : {to}" for i in range(_UNROLL)),
    ]
    body = [
        _PART,
        f"%step = arith.constant {grain(spec)} : index",
        *loop("%r", REPEATS, loop("%at0", "%first to %last step %step", lines)),
    ]
    name = "stream" if streaming else "copy"
    return kernel_of(name, body, [_OVER_S.format("x"), _OVER_S.format("y")], "S")


def latency() -> Kernel:
    """Follow indices through x: each load needs the one before it."""
    lines = ["%j = memref.load %x[%i] : memref<?xindex>"]
    body = [
        *loop("%r", REPEATS, lines, {"%i": "%c0"}, ["%j"], "index", "%end"),
        "%last = arith.index_cast %end : index to i64",
        f"memref.store %last, %sink[%c0] : memref<{SINK}xi64>",
    ]
    return kernel_of(
        "latency", body, ['%x: memref<?xindex> {metadef.dims = ["S"]}', sink_of("i64")], "S"
    )


def barrier() -> Kernel:
    """Wait for the other threads."""
    body = loop("%r", REPEATS, ["func.call @metadef_barrier() : () -> ()"])
    return kernel_of("barrier", body, [], before="func.func private @metadef_barrier()")


def fork_join() -> Kernel:
    """Start a region of `T` threads that do nothing."""
    before = """
    func.func private @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
    llvm.func internal @nothing(%data: !llvm.ptr) { llvm.return }"""
    call = """func.call @GOMP_parallel(%function, %null, %threads, %flags)
        : (!llvm.ptr, !llvm.ptr, i32, i32) -> ()"""
    body = [
        "%function = llvm.mlir.addressof @nothing : !llvm.ptr",
        "%null = llvm.mlir.zero : !llvm.ptr",
        "%threads = arith.index_cast %T : index to i32",
        "%flags = arith.constant 0 : i32",
        *loop("%r", REPEATS, [call]),
    ]
    return kernel_of("fork_join", body, [], "T", before=before)


def timer() -> Kernel:
    """Read the monotonic clock."""
    call = "%status = func.call @clock_gettime(%monotonic, %time) : (i32, !llvm.ptr) -> i32"
    body = [
        "%one = arith.constant 1 : i64",
        "%monotonic = arith.constant 1 : i32",
        "%time = llvm.alloca %one x !llvm.struct<(i64, i64)> : (i64) -> !llvm.ptr",
        *loop("%r", REPEATS, [call]),
    ]
    before = "func.func private @clock_gettime(i32, !llvm.ptr) -> i32"
    return kernel_of("timer", body, [], before=before)


def _places(spec: DeviceSpec) -> list[str]:
    """Define %at1, %at2, ...: where the vectors after that at %at0 are."""
    lines = []
    for i in range(1, _UNROLL):
        lines.append(f"%by{i} = arith.constant {i * lanes(spec, 'f32')} : index")
        lines.append(f"%at{i} = arith.addi %at0, %by{i} : index")
    return lines

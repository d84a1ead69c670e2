"""The micro-benchmarks as MLIR: kernels as `vectorize` leaves them, with the runtime's ABI.

Each repeats its work `R` times. Those over memory take `S` elements, each thread a part of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from metadef.device.spec import DeviceSpec

#: vectors in flight in the body of a loop over memory
_UNROLL = 8
#: elements of the tensor that results go to, so that nothing is left out as unused; 16 a thread
SINK = 16 * 1024
_OVER_S = '%{}: memref<?xf32> {{metadef.dims = ["S"]}}'
_REPEATS = "%c0 to %R step %c1"
_PART = """%part = arith.divui %S, %n : index
%first = arith.muli %tid, %part : index
%last = arith.addi %first, %part : index"""


@dataclass(frozen=True)
class Kernel:
    """A module with the one function `@name`; `symbols` in the order of its index arguments."""

    name: str
    text: str
    symbols: tuple[str, ...]


def lanes(spec: DeviceSpec, element: str) -> int:
    """Return the elements of a vector; wider registers than of 512 bits work on parts."""
    return max(1, min(spec.vector_bits, 512) // int(element[1:]))


def grain(spec: DeviceSpec) -> int:
    """Return what the f32 elements of each thread must be a multiple of."""
    return _UNROLL * lanes(spec, "f32")


def fma_chains(spec: DeviceSpec) -> int:
    """Return the accumulators of `fma`: the registers but those of two operands and two spare."""
    return max(4, min(24, spec.vector_registers - 4))


def fma(spec: DeviceSpec, element: str) -> Kernel:
    """As many independent chains of multiply-adds as fit in registers."""
    chains = fma_chains(spec)
    vector = _vector(spec, element)
    lines = []
    for i in range(chains):
        if spec.instruction("fma", element) is not None:
            lines.append(f"%next{i} = math.fma %acc{i}, %a, %b : {vector}")
        else:
            lines.append(f"%product{i} = arith.mulf %acc{i}, %a : {vector}")
            lines.append(f"%next{i} = arith.addf %product{i}, %b : {vector}")
    carried = {f"%acc{i}": "%a" for i in range(chains)}
    body = [
        f"%a = vector.load %x[%c0] : memref<16x{element}>, {vector}",
        f"%b = vector.load %x[%c0] : memref<16x{element}>, {vector}",
        *_loop("%r", _REPEATS, lines, carried, _names("%next", chains), vector, "%made"),
        *_store_sum("%made", chains, vector, element),
    ]
    return _kernel(f"fma_{element}", body, [f"%x: memref<16x{element}>", _sink(element)])


def read(spec: DeviceSpec) -> Kernel:
    """Sum up the thread's part of x, in independent sums."""
    vector = _vector(spec, "f32")
    lines = _places(spec)
    for i in range(_UNROLL):
        lines.append(f"%v{i} = vector.load %x[%at{i}] : memref<?xf32>, {vector}")
        lines.append(f"%next{i} = arith.addf %sum{i}, %v{i} : {vector}")
    sums = {f"%sum{i}": f"%acc{i}" for i in range(_UNROLL)}
    next_sums = _names("%next", _UNROLL)
    over_part = _loop(
        "%at0", "%first to %last step %step", lines, sums, next_sums, vector, "%inner"
    )
    zeros = {f"%acc{i}": "%zero" for i in range(_UNROLL)}
    body = [
        _PART,
        f"%step = arith.constant {grain(spec)} : index",
        f"%zero = arith.constant dense<0.0> : {vector}",
        *_loop("%r", _REPEATS, over_part, zeros, _names("%inner#", _UNROLL), vector, "%made"),
        *_store_sum("%made", _UNROLL, vector, "f32"),
    ]
    return _kernel("read", body, [_OVER_S.format("x"), _sink("f32")], "S")


def copy(spec: DeviceSpec, *, streaming: bool = False) -> Kernel:
    """Copy the thread's part of x to y; `streaming` stores go past the caches."""
    vector = _vector(spec, "f32")
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
        *_loop("%r", _REPEATS, _loop("%at0", "%first to %last step %step", lines)),
    ]
    name = "stream" if streaming else "copy"
    return _kernel(name, body, [_OVER_S.format("x"), _OVER_S.format("y")], "S")


def latency() -> Kernel:
    """Follow indices through x: each load needs the one before it."""
    lines = ["%j = memref.load %x[%i] : memref<?xindex>"]
    body = [
        *_loop("%r", _REPEATS, lines, {"%i": "%c0"}, ["%j"], "index", "%end"),
        "%last = arith.index_cast %end : index to i64",
        f"memref.store %last, %sink[%c0] : memref<{SINK}xi64>",
    ]
    return _kernel(
        "latency", body, ['%x: memref<?xindex> {metadef.dims = ["S"]}', _sink("i64")], "S"
    )


def barrier() -> Kernel:
    """Wait for the other threads."""
    body = _loop("%r", _REPEATS, ["func.call @metadef_barrier() : () -> ()"])
    return _kernel("barrier", body, [], before="func.func private @metadef_barrier()")


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
        *_loop("%r", _REPEATS, [call]),
    ]
    return _kernel("fork_join", body, [], "T", before=before)


def timer() -> Kernel:
    """Read the monotonic clock."""
    call = "%status = func.call @clock_gettime(%monotonic, %time) : (i32, !llvm.ptr) -> i32"
    body = [
        "%one = arith.constant 1 : i64",
        "%monotonic = arith.constant 1 : i32",
        "%time = llvm.alloca %one x !llvm.struct<(i64, i64)> : (i64) -> !llvm.ptr",
        *_loop("%r", _REPEATS, [call]),
    ]
    before = "func.func private @clock_gettime(i32, !llvm.ptr) -> i32"
    return _kernel("timer", body, [], before=before)


def _kernel(
    name: str, body: Sequence[str], memrefs: Sequence[str], *symbols: str, before: str = ""
) -> Kernel:
    names = ("R", *symbols)
    arguments = [*memrefs, *(f'%{s}: index {{metadef.symbol = "{s}"}}' for s in names)]
    lines = [
        before,
        f"func.func @{name}({', '.join([*arguments, '%tid: index', '%n: index'])}) {{",
        "%c0 = arith.constant 0 : index",
        "%c1 = arith.constant 1 : index",
        *body,
        "return }",
    ]
    return Kernel(name, "\n".join(lines), names)


def _loop(
    index: str,
    bounds: str,
    lines: Sequence[str],
    carried: Mapping[str, str] | None = None,
    yields: Sequence[str] = (),
    type_: str = "",
    results: str = "",
) -> list[str]:
    """Return a loop of `lines`; `carried` are the values that go round it, with their start."""
    if not carried:
        return [f"scf.for {index} = {bounds} {{", *lines, "}"]
    pairs = ", ".join(f"{name} = {start}" for name, start in carried.items())
    types = ", ".join([type_] * len(carried))
    results = results if len(carried) == 1 else f"{results}:{len(carried)}"
    return [
        f"{results} = scf.for {index} = {bounds} iter_args({pairs}) -> ({types}) {{",
        *lines,
        f"scf.yield {', '.join(yields)} : {types} }}",
    ]


def _places(spec: DeviceSpec) -> list[str]:
    """Define %at1, %at2, ...: where the vectors after that at %at0 are."""
    lines = []
    for i in range(1, _UNROLL):
        lines.append(f"%by{i} = arith.constant {i * lanes(spec, 'f32')} : index")
        lines.append(f"%at{i} = arith.addi %at0, %by{i} : index")
    return lines


def _store_sum(values: str, count: int, vector: str, element: str) -> list[str]:
    """Store the sum of `count` values at the thread's place in %sink."""
    lines = [f"%total1 = arith.addf {values}#0, {values}#1 : {vector}"]
    for i in range(2, count):
        lines.append(f"%total{i} = arith.addf %total{i - 1}, {values}#{i} : {vector}")
    return [
        *lines,
        "%sixteen = arith.constant 16 : index",
        "%place = arith.muli %tid, %sixteen : index",
        f"vector.store %total{count - 1}, %sink[%place] : memref<{SINK}x{element}>, {vector}",
    ]


def _vector(spec: DeviceSpec, element: str) -> str:
    return f"vector<{lanes(spec, element)}x{element}>"


def _names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{i}" for i in range(count)]


def _sink(element: str) -> str:
    return f"%sink: memref<{SINK}x{element}>"

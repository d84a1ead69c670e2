"""Numbers of vectorised kernels against numpy in double precision: tails, threads, symbols."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np
import pytest

from metadef import ir
from metadef.codegen.llvm import host_target, llvm_ir, object_code
from metadef.passes.expand_math import ExpandMath
from metadef.passes.lower_to_llvm import LowerToLlvm
from metadef.passes.vectorize import Vectorize
from metadef.runtime.jit import Library, _openmp

# Sums of up to a few hundred float32 terms of size one: 64 roundings of half an ulp.
TOLERANCE = 64 * 2**-24

ZERO = "%zero = arith.constant 0.0 : f32\n"
LOWEST = "%lowest = arith.constant 0xFF800000 : f32\n"


def memref(*shape: int | str) -> str:
    return "memref<" + "".join(f"{n}x" for n in shape) + "f32>"


def fill(value: str, buffer: str, type_: str) -> str:
    return f"linalg.fill ins({value} : f32) outs({buffer} : {type_})\n"


def generic(
    maps: Sequence[str],
    iterators: str,
    inputs: Sequence[tuple[str, str]],
    outputs: Sequence[tuple[str, str]],
    body: str,
    results: Sequence[str],
) -> str:
    """Return a linalg.generic whose body sees inputs as %i0.. and running outputs as %o0.."""
    dims = ",".join(f"d{i}" for i in range(len(iterators)))
    affine = ",".join(f"affine_map<({dims}) -> ({m})>" for m in maps)
    kinds = ",".join('"parallel"' if k == "p" else '"reduction"' for k in iterators)

    def operands(word: str, pairs: Sequence[tuple[str, str]]) -> str:
        names, types = ",".join(n for n, _ in pairs), ",".join(t for _, t in pairs)
        return f"{word}({names} : {types})" if pairs else ""

    args = [f"%i{k}: f32" for k in range(len(inputs))] + [
        f"%o{k}: f32" for k in range(len(outputs))
    ]
    return (
        f"linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}} "
        f"{operands('ins', inputs)} {operands('outs', outputs)} {{\n^bb0({', '.join(args)}):\n"
        f"{body}\nlinalg.yield {', '.join(results)} : {', '.join(['f32'] * len(results))}\n}}\n"
    )


def function(arguments: Sequence[tuple[str, str]], body: str, symbols: Sequence[str] = ()) -> str:
    args = [f"{name}: {type_}" for name, type_ in arguments]
    args += [f'%{s}: index {{metadef.symbol = "{s}"}}' for s in symbols]
    return f"func.func @k({', '.join(args)}) {{\n{ZERO}{LOWEST}{body}return\n}}"


def pointwise(body: str) -> str:
    """Return a kernel with sizes B and S that makes %r of each %i0 of %x and %o0 of %y, for %y."""
    type_ = memref("?", "?")
    dims = type_ + ' {metadef.dims = ["B", "S"]}'
    op = generic(["d0,d1", "d0,d1"], "pp", [("%x", type_)], [("%y", type_)], body, ["%r"])
    return function([("%x", dims), ("%y", dims)], op, ["B", "S"])


def run(
    text: str,
    arrays: Sequence[np.ndarray],
    *,
    symbols: Sequence[int] = (),
    threads: int = 1,
    scratch: int = 1 << 22,
    team: int | None = None,
) -> None:
    """Compile the kernel @k and run it on a team of `threads` OpenMP threads.

    With a smaller `team` the other threads never come.
    """
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        for p in (Vectorize(), ExpandMath(), LowerToLlvm()):
            p.run(module.operation)
            assert module.operation.verify()
        library = Library([object_code(llvm_ir(module), host_target())])
    words = ctypes.c_int64
    abi = [*[ctypes.c_void_p] * 3, words, words, ctypes.c_void_p]
    kernel = ctypes.CFUNCTYPE(None, *abi)(library.address("k"))
    pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
    values = (ctypes.c_int64 * max(1, len(symbols)))(*symbols)
    memory = np.zeros(scratch, np.uint8)
    tickets = np.zeros(1024, np.int64)
    openmp = _openmp()

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    def share(_: int) -> None:
        tid = openmp.omp_get_thread_num()
        kernel(pointers, values, memory.ctypes.data, tid, threads, tickets.ctypes.data)

    openmp.GOMP_parallel(share, None, team or threads, 0)


def normal(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape) + len(shape))
    return rng.standard_normal(shape).astype(np.float32)


def check(got: np.ndarray, expected: np.ndarray) -> None:
    scale = max(1.0, np.abs(expected).max(initial=0))
    np.testing.assert_allclose(got / scale, expected / scale, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shape, dim", [((4, 5, 100), 2), ((4, 37, 50), 1), ((3, 17, 19), 0)])
def test_softmax_rows_share_one_nest(shape: tuple[int, ...], dim: int, threads: int) -> None:
    kept = [i for i in range(3) if i != dim]
    full, part = memref(*shape), memref(*[shape[i] for i in kept])
    rows = ",".join(f"d{i}" for i in kept)
    iterators = "".join("r" if i == dim else "p" for i in range(3))
    body = f"%m = memref.alloc() : {part}\n%s = memref.alloc() : {part}\n"
    body += f"%e = memref.alloc() : {full}\n" + fill("%lowest", "%m", part)
    body += generic(["d0,d1,d2", rows], iterators, [("%x", full)], [("%m", part)],
                    "%r = arith.maximumf %i0, %o0 : f32", ["%r"])  # fmt: skip
    body += fill("%zero", "%s", part)
    body += generic(["d0,d1,d2", rows, "d0,d1,d2", rows], iterators,
                    [("%x", full), ("%m", part)], [("%e", full), ("%s", part)],
                    "%d = arith.subf %i0, %i1 : f32\n%f = math.exp %d : f32\n"
                    "%r = arith.addf %f, %o1 : f32", ["%f", "%r"])  # fmt: skip
    body += generic(["d0,d1,d2", rows, "d0,d1,d2"], "ppp", [("%e", full), ("%s", part)],
                    [("%y", full)], "%r = arith.divf %i0, %i1 : f32", ["%r"])  # fmt: skip
    x, y = normal(*shape), np.zeros(shape, np.float32)
    run(function([("%x", full), ("%y", full)], body), [x, y], threads=threads)
    e = np.exp(x.astype(np.float64) - x.max(dim, keepdims=True))
    check(y, e / e.sum(dim, keepdims=True))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_over_any_axis(axis: int | None, threads: int) -> None:
    x = np.abs(normal(33, 1000))
    expected = np.asarray(x.astype(np.float64).sum(axis))
    y = np.zeros(expected.shape, np.float32)
    kept = {0: "d1", 1: "d0", None: ""}[axis]
    iterators = {0: "rp", 1: "pr", None: "rr"}[axis]
    out = memref(*expected.shape)
    body = fill("%zero", "%y", out) + generic(
        ["d0,d1", kept], iterators, [("%x", memref(33, 1000))], [("%y", out)],
        "%r = arith.addf %i0, %o0 : f32", ["%r"])  # fmt: skip
    run(function([("%x", memref(33, 1000)), ("%y", out)], body), [x, y], threads=threads)
    check(y, expected)


def test_long_sums_are_added_up_in_chunks() -> None:
    # One by one in float32, 2**23 numbers around one half stop growing near 2**23 with an error
    # of 1e-3 and more; chunks keep it near the rounding of the result.
    n = 1 << 23
    x = np.random.default_rng(0).random(n, np.float32)
    y = np.zeros((), np.float32)
    body = fill("%zero", "%y", memref()) + generic(
        ["d0", ""], "r", [("%x", memref(n))], [("%y", memref())],
        "%r = arith.addf %i0, %o0 : f32", ["%r"])  # fmt: skip
    run(function([("%x", memref(n)), ("%y", memref())], body), [x, y])
    assert abs(float(y) / x.astype(np.float64).sum() - 1) < 1e-6


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "n, size, channels, out, kernel, stride",
    [(1, 15, 8, 32, 3, 1), (2, 14, 16, 40, 3, 2), (1, 9, 3, 5, 3, 1), (1, 5, 64, 64, 1, 1)],
)
def test_convolution_with_epilogue_in_registers(
    n: int, size: int, channels: int, out: int, kernel: int, stride: int, threads: int
) -> None:
    side = (size - kernel) // stride + 1
    image, weight = memref(n, size, size, channels), memref(kernel, kernel, channels, out)
    result, vector = memref(n, side, side, out), memref(out)
    body = f"%t = memref.alloc() : {result}\n" + fill("%zero", "%t", result)
    body += generic(
        [f"d0, d1 * {stride} + d4, d2 * {stride} + d5, d6", "d4,d5,d6,d3", "d0,d1,d2,d3"],
        "pppprrr", [("%x", image), ("%w", weight)], [("%t", result)],
        "%p = arith.mulf %i0, %i1 : f32\n%r = arith.addf %o0, %p : f32", ["%r"])  # fmt: skip
    body += generic(["d0,d1,d2,d3", "d3", "d0,d1,d2,d3"], "pppp",
                    [("%t", result), ("%b", vector)], [("%y", result)],
                    "%p = arith.addf %i0, %i1 : f32\n%r = arith.maximumf %p, %zero : f32",
                    ["%r"])  # fmt: skip
    x, w, b = normal(n, size, size, channels), normal(kernel, kernel, channels, out), normal(out)
    y = np.zeros((n, side, side, out), np.float32)
    arguments = [("%x", image), ("%w", weight), ("%b", vector), ("%y", result)]
    run(function(arguments, body), [x, w, b, y], threads=threads)
    windows = np.lib.stride_tricks.sliding_window_view(
        x.astype(np.float64), (kernel, kernel), axis=(1, 2)
    )[:, ::stride, ::stride]
    check(y, np.maximum(np.einsum("nijcab,abco->nijo", windows, w) + b, 0))


@pytest.mark.parametrize(
    "batch, m, n, k, transposed",
    [(3, 50, 70, 33, True), (2, 100, 200, 600, False), (1, 1, 64, 64, True), (1, 7, 3, 5, True)],
)
def test_products_of_computed_operands(
    batch: int, m: int, n: int, k: int, transposed: bool
) -> None:
    right = (batch, n, k) if transposed else (batch, k, n)
    types = memref(batch, m, k), memref(*right), memref(batch, m, n)
    body = fill("%zero", "%c", types[2]) + generic(
        ["d0,d1,d3", "d0,d2,d3" if transposed else "d0,d3,d2", "d0,d1,d2"], "pppr",
        [("%a", types[0]), ("%b", types[1])], [("%c", types[2])],
        "%p = arith.mulf %i0, %i1 : f32\n%r = arith.addf %o0, %p : f32", ["%r"])  # fmt: skip
    a, b, c = normal(batch, m, k), normal(*right), np.zeros((batch, m, n), np.float32)
    run(function([("%a", types[0]), ("%b", types[1]), ("%c", types[2])], body), [a, b, c])
    check(c, a.astype(np.float64) @ (b.transpose(0, 2, 1) if transposed else b))


@pytest.mark.parametrize("rows", [0, 1, 5, 13, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_symbolic_rows(rows: int, threads: int) -> None:
    dynamic = [memref("?", n) + f' {{metadef.dims = ["B", {n}]}}' for n in (24, 40)]
    body = fill("%zero", "%c", memref("?", 40)) + generic(
        ["d0,d2", "d2,d1", "d0,d1"], "ppr",
        [("%a", memref("?", 24)), ("%b", memref(24, 40))], [("%c", memref("?", 40))],
        "%p = arith.mulf %i0, %i1 : f32\n%r = arith.addf %o0, %p : f32", ["%r"])  # fmt: skip
    text = function([("%a", dynamic[0]), ("%b", memref(24, 40)), ("%c", dynamic[1])], body, ["B"])
    a, b, c = normal(rows, 24), normal(24, 40), np.full((rows, 40), 7, np.float32)
    run(text, [a, b, c], symbols=[rows], threads=threads)
    check(c, a.astype(np.float64) @ b)


@pytest.mark.parametrize("shape", [(3, 50), (1, 1), (0, 5), (100, 7)])
def test_symbolic_pointwise(shape: tuple[int, int]) -> None:
    x, y = normal(*shape), np.zeros(shape, np.float32)
    run(pointwise("%r = math.exp %i0 : f32"), [x, y], symbols=shape)
    np.testing.assert_allclose(y, np.exp(x.astype(np.float64)), rtol=4 * 2**-23)


@pytest.mark.parametrize("shape", [(3, 50), (1, 1), (0, 5), (999, 33)])
def test_others_do_the_share_of_a_thread_that_never_comes(shape: tuple[int, int]) -> None:
    x, y = normal(*shape), np.ones(shape, np.float32)
    run(pointwise("%r = arith.addf %i0, %o0 : f32"), [x, y], symbols=shape, threads=5, team=2)
    check(y, x.astype(np.float64) + 1)  # each element once


def test_loop_index_in_a_body() -> None:
    scalar = (
        "%i = linalg.index 1 : index\n%j = arith.index_cast %i : index to i32\n"
        "%f = arith.sitofp %j : i32 to f32\n%r = arith.addf %f, %i0 : f32"
    )
    type_ = memref(3, 37)
    body = generic(["d0,d1", "d0,d1"], "pp", [("%x", type_)], [("%y", type_)], scalar, ["%r"])
    x, y = normal(3, 37), np.zeros((3, 37), np.float32)
    run(function([("%x", memref(3, 37)), ("%y", memref(3, 37))], body), [x, y])
    check(y, x.astype(np.float64) + np.arange(37))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shape", [(301, 4099, 33), (260, 6000, 16)])
def test_long_products_are_cut_in_chunks(shape: tuple[int, int, int], threads: int) -> None:
    """Rows of 16 KiB do not stay in the second cache level: sums wait in memory."""
    m, k, n = shape
    x, w = normal(m, k), normal(k, n)
    y = np.zeros((m, n), np.float32)
    product = generic(
        ["d0, d2", "d2, d1", "d0, d1"],
        "ppr",
        [("%x", memref(m, k)), ("%w", memref(k, n))],
        [("%t", memref(m, n))],
        "%p = arith.mulf %i0, %i1 : f32\n%s = arith.addf %o0, %p : f32",
        ["%s"],
    )
    double = generic(
        ["d0, d1", "d0, d1"],
        "pp",
        [("%t", memref(m, n))],
        [("%y", memref(m, n))],
        "%s = arith.addf %i0, %i0 : f32",
        ["%s"],
    )
    body = f"%t = memref.alloc() : {memref(m, n)}\n" + fill("%zero", "%t", memref(m, n))
    arguments = [("%x", memref(m, k)), ("%w", memref(k, n)), ("%y", memref(m, n))]
    text = function(arguments, body + product + double)
    run(text, [x, w, y], threads=threads, scratch=1 << 25)
    expected = 2 * (x.astype(np.float64) @ w.astype(np.float64))
    # sqrt(K) roundings, in a random walk, of sums of size sqrt(K); doubled.
    assert np.abs(y - expected).max() <= 2 * k * 2**-24


@pytest.mark.parametrize("k", [1, 7, 8, 33, 4099])
def test_few_sums_go_on_as_several_strands(k: int) -> None:
    x, w, y = normal(1, k), normal(k, 32), np.zeros((1, 32), np.float32)
    product = generic(
        ["d0, d2", "d2, d1", "d0, d1"],
        "ppr",
        [("%x", memref(1, k)), ("%w", memref(k, 32))],
        [("%y", memref(1, 32))],
        "%p = arith.mulf %i0, %i1 : f32\n%s = arith.addf %o0, %p : f32",
        ["%s"],
    )
    arguments = [("%x", memref(1, k)), ("%w", memref(k, 32)), ("%y", memref(1, 32))]
    run(function(arguments, fill("%zero", "%y", memref(1, 32)) + product), [x, w, y])
    expected = x.astype(np.float64) @ w.astype(np.float64)
    # sqrt(K) roundings, in a random walk, of sums of size sqrt(K); doubled.
    assert np.abs(y - expected).max() <= 2 * max(k, 4) * 2**-24


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    "size, channels, out, kernel, stride, dilation",
    [
        (7, 8, 40, 3, 1, 1),
        (30, 3, 16, 7, 2, 1),
        (19, 300, 17, 3, 1, 2),
        (1, 4, 8, 5, 1, 1),
        (200, 2, 24, 3, 1, 1),
        (9, 2000, 16, 3, 2, 1),
        (3, 8, 16, 3, 1, 1),
    ],
)
def test_windows_across_the_edges_of_their_input(
    size: int, channels: int, out: int, kernel: int, stride: int, dilation: int, threads: int
) -> None:
    low, reach = kernel // 2 * dilation, dilation * (kernel - 1)
    height, whole = 5, size + 2 * low
    rows, side = (height + 2 * low - reach - 1) // stride + 1, (whole - reach - 1) // stride + 1
    image, around = memref(height, size, channels), memref(height + 2 * low, whole, channels)
    weight, result = memref(kernel, kernel, channels, out), memref(rows, side, out)
    offset = low * (whole + 1) * channels
    inside = (
        f"memref<{height}x{size}x{channels}xf32,"
        f" strided<[{whole * channels}, {channels}, 1], offset: {offset}>>"
    )
    body = f"%a = memref.alloc() : {around}\n" + fill("%zero", "%a", around)
    body += (
        f"%i = memref.subview %a[{low}, {low}, 0] [{height}, {size}, {channels}] [1, 1, 1]"
        f" : {around} to {inside}\n"
    )
    identity = "d0,d1,d2"
    body += generic([identity] * 2, "ppp", [("%x", image)], [("%i", inside)], "", ["%i0"])
    body += fill("%zero", "%y", result)
    windows = f"d0 * {stride} + d3 * {dilation}, d1 * {stride} + d4 * {dilation}, d5"
    body += generic(
        [windows, "d3,d4,d5,d2", identity], "ppprrr",
        [("%a", around), ("%w", weight)], [("%y", result)],
        "%p = arith.mulf %i0, %i1 : f32\n%r = arith.addf %o0, %p : f32", ["%r"])  # fmt: skip
    x, w = normal(height, size, channels), normal(kernel, kernel, channels, out)
    y = np.zeros((rows, side, out), np.float32)
    run(function([("%x", image), ("%w", weight), ("%y", result)], body), [x, w, y], threads=threads)
    zeros = np.pad(x.astype(np.float64), ((low, low), (low, low), (0, 0)))
    taps = np.lib.stride_tricks.sliding_window_view(zeros, (reach + 1,) * 2, axis=(0, 1))
    taps = taps[::stride, ::stride, :, ::dilation, ::dilation]
    check(y, np.einsum("ijcab,abco->ijo", taps, w))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "channels, height, width, kernel, stride, dilation, low",
    [
        (3, 38, 70, 7, 2, 1, 2),
        (3, 45, 45, 7, 2, 1, 0),
        (2, 31, 53, 3, 3, 2, 1),
        (2, 20, 49, 3, 4, 1, 1),
        (2, 19, 21, 5, 2, 2, 4),
        (5, 17, 16, 3, 1, 1, 1),
        (4, 7, 7, 3, 1, 1, 1),
        (2, 1, 30, 3, 2, 1, 1),
        (1, 400, 100, 5, 2, 1, 2),
    ],
)
def test_windows_along_the_lanes(
    channels: int,
    height: int,
    width: int,
    kernel: int,
    stride: int,
    dilation: int,
    low: int,
    threads: int,
) -> None:
    reach = dilation * (kernel - 1)
    sides = height + 2 * low, width + 2 * low
    rows, columns = ((n - reach - 1) // stride + 1 for n in sides)
    image, around = memref(channels, height, width), memref(channels, *sides)
    weight, result = memref(channels, kernel, kernel), memref(channels, rows, columns)
    identity, a, body = "d0,d1,d2", "%x", ""
    if low:
        a = "%a"
        inside = (
            f"memref<{channels}x{height}x{width}xf32,"
            f" strided<[{sides[0] * sides[1]}, {sides[1]}, 1], offset: {low * (sides[1] + 1)}>>"
        )
        body += f"%a = memref.alloc() : {around}\n" + fill("%zero", "%a", around)
        body += (
            f"%i = memref.subview %a[0, {low}, {low}] [{channels}, {height}, {width}] [1, 1, 1]"
            f" : {around} to {inside}\n"
        )
        body += generic([identity] * 2, "ppp", [("%x", image)], [("%i", inside)], "", ["%i0"])
    body += fill("%zero", "%y", result)
    windows = f"d0, d1 * {stride} + d3 * {dilation}, d2 * {stride} + d4 * {dilation}"
    body += generic(
        [windows, "d0,d3,d4", identity], "ppprr",
        [(a, around), ("%w", weight)], [("%y", result)],
        "%p = arith.mulf %i0, %i1 : f32\n%r = arith.addf %o0, %p : f32", ["%r"])  # fmt: skip
    x, w = normal(channels, height, width), normal(channels, kernel, kernel)
    y = np.zeros((channels, rows, columns), np.float32)
    run(function([("%x", image), ("%w", weight), ("%y", result)], body), [x, w, y], threads=threads)
    zeros = np.pad(x.astype(np.float64), ((0, 0), (low, low), (low, low)))
    taps = np.lib.stride_tricks.sliding_window_view(zeros, (reach + 1,) * 2, axis=(1, 2))
    taps = taps[:, ::stride, ::stride, ::dilation, ::dilation]
    check(y, np.einsum("cijab,cab->cij", taps, w))


@pytest.mark.parametrize("n", [256, 272, 1000])
@pytest.mark.parametrize("k", [1, 33, 5000])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_product_of_one_row_reads_several_panels_at_once(n: int, k: int, threads: int) -> None:
    width = 16
    count = -(-n // width)
    x, w, y = normal(1, k), normal(count, k, width), np.zeros((1, n), np.float32)
    panels = f"d1 floordiv {width}, d2, d1 mod {width}"
    product = generic(
        ["d0, d2", panels, "d0, d1"],
        "ppr",
        [("%x", memref(1, k)), ("%w", memref(count, k, width))],
        [("%y", memref(1, n))],
        "%p = arith.mulf %i0, %i1 : f32\n%s = arith.addf %o0, %p : f32",
        ["%s"],
    )
    arguments = [("%x", memref(1, k)), ("%w", memref(count, k, width)), ("%y", memref(1, n))]
    text = function(arguments, fill("%zero", "%y", memref(1, n)) + product)
    run(text, [x, w, y], threads=threads)
    columns = w.transpose(1, 0, 2).reshape(k, count * width)[:, :n]
    expected = x.astype(np.float64) @ columns.astype(np.float64)
    # sqrt(K) roundings, in a random walk, of sums of size sqrt(K); doubled.
    assert np.abs(y - expected).max() <= 2 * max(k, 4) * 2**-24


@pytest.mark.parametrize("step", [2, 3, 4])
def test_lanes_a_few_elements_apart(step: int) -> None:
    rows, columns = 3, 77
    last = step * (columns - 1) + 1  # nothing behind the last lane may be read
    wide, result = memref(rows, last), memref(rows, columns)
    body = generic([f"d0, d1 * {step}", "d0,d1"], "pp", [("%x", wide)], [("%y", result)],
                   "%r = arith.addf %i0, %i0 : f32", ["%r"])  # fmt: skip
    x, y = normal(rows, last), np.zeros((rows, columns), np.float32)
    run(function([("%x", wide), ("%y", result)], body), [x, y])
    check(y, 2.0 * x[:, ::step])

"""Parts of dims: slices, splits, windows, and writing them back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.scatter import scatter
from metadef.dialects.metadef.ops.take import take
from metadef.symbolic import Dim, DimLike, ceildiv, same

from . import build
from .build import (
    dims,
    rank,
    reshape,
    select,
    slice_,
    transpose,
    unsqueeze,
)
from .call import Call
from .dtypes import i64
from .registry import NotModelled, converts


def slice_bounds(call: Call, size: Dim, start: Any, end: Any) -> tuple[Dim, Dim]:
    """Return first and past-the-end index of `[start:end]` as Python clamps them."""

    def clamped(bound: Any, default: DimLike) -> Dim:
        at = Dim.of(default if bound is None else bound)
        if call.ranges.is_negative(at):
            return call.ranges.maximum(size + at, 0)
        if at.is_static and at.value >= 2**62:
            return size
        return call.ranges.minimum(at, size)

    first = clamped(start, 0)
    return first, call.ranges.maximum(clamped(end, size), first)


@converts("aten.slice.Tensor", "aten.slice_copy.Tensor")
def slice_tensor(call: Call, x: ir.Value, dim: int, start: Any, end: Any, step: int) -> ir.Value:
    dim %= rank(x)
    size = dims(x)[dim]
    first, last = slice_bounds(call, size, start, end)
    count = ceildiv(last - first, step)
    if call.dims is not None and same(count, call.dims[dim]) is not False:
        count = call.dims[dim]
    if count.is_static and count.value == 0:
        first = Dim.of(0)
    return slice_(x, dim, first, count, step)


@converts("aten.narrow", "aten.narrow.Tensor", "aten.narrow_copy")
def narrow(call: Call, x: ir.Value, dim: int, start: Any, length: Any) -> ir.Value:
    if isinstance(start, ir.Value):
        raise NotModelled
    dim %= rank(x)
    at = Dim.of(start)
    return slice_(x, dim, dims(x)[dim] + at if call.ranges.is_negative(at) else at, length)


@converts("aten.select.int", "aten.select_copy.int")
def select_int(call: Call, x: ir.Value, dim: int, index: Any) -> ir.Value:
    return select(x, dim % rank(x), position(call, dims(x)[dim], index))


def position(call: Call, size: Dim, index: Any) -> Dim:
    """Return an index counted from the front."""
    if not isinstance(index, int | Dim):
        raise NotModelled
    at = Dim.of(index)
    return size + at if call.ranges.is_negative(at) else at


def pieces(x: ir.Value, dim: int, sizes: Sequence[DimLike]) -> list[ir.Value]:
    """Return consecutive slices of `dim` of the given sizes."""
    start = Dim.of(0)
    result = []
    for size in sizes:
        result.append(slice_(x, dim, start, size))
        start = start + size
    return result


def static_size(x: ir.Value, dim: int) -> int:
    """Return a dim that has to be static, or leave the op to torch-mlir."""
    size = dims(x)[dim]
    if not size.is_static:
        raise NotModelled
    return size.value


@converts("aten.split.Tensor", "aten.split_copy.Tensor", "aten.unsafe_split.Tensor")
def split(call: Call, x: ir.Value, size: Any, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    whole = dims(x)[dim]
    step = Dim.of(size)
    count = whole // step
    if not whole.is_static and count.is_static:  # such as 3*S by S
        return pieces(x, dim, [step] * count.value)
    if not whole.is_static or not step.is_static:
        raise NotModelled
    if step.value == 0:
        return [x]
    starts = range(0, max(whole.value, 1), step.value)
    return pieces(x, dim, [min(step.value, whole.value - s) for s in starts])


@converts("aten.split_with_sizes", "aten.split.sizes", "aten.split_with_sizes_copy")
@converts("aten.unsafe_split_with_sizes")
def split_with_sizes(call: Call, x: ir.Value, sizes: Sequence[Any], dim: int) -> list[ir.Value]:
    return pieces(x, dim % rank(x), sizes)


@converts("aten.chunk", "aten.unsafe_chunk")
def chunk(call: Call, x: ir.Value, count: int, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    size = dims(x)[dim]
    each = size // count
    if not size.is_static:
        if same(each * count, size) is not True:
            raise NotModelled
        return pieces(x, dim, [each] * count)
    step = max(-(-size.value // count), 1)
    starts = range(0, max(size.value, 1), step)
    return pieces(x, dim, [min(step, size.value - s) for s in starts])


@converts("aten.tensor_split.sections")
def tensor_split(call: Call, x: ir.Value, sections: int, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    each, extra = divmod(static_size(x, dim), sections)
    return pieces(x, dim, [each + (i < extra) for i in range(sections)])


@converts("aten.tensor_split.indices")
def tensor_split_indices(
    call: Call, x: ir.Value, indices: Sequence[int], dim: int
) -> list[ir.Value]:
    dim %= rank(x)
    size = static_size(x, dim)
    edges = [min(max(i + size if i < 0 else i, 0), size) for i in indices]
    bounds = zip([0, *edges], [*edges, size], strict=True)
    return [slice_(x, dim, min(a, b) if a < size else 0, max(b - a, 0)) for a, b in bounds]


@converts("aten.hsplit.int", "aten.vsplit.int", "aten.dsplit.int")
def split_side(call: Call, x: ir.Value, sections: int) -> list[ir.Value]:
    return tensor_split(call, x, sections, _side(call, x))


@converts("aten.hsplit.array", "aten.vsplit.array", "aten.dsplit.array")
def split_side_indices(call: Call, x: ir.Value, indices: Sequence[int]) -> list[ir.Value]:
    return tensor_split_indices(call, x, indices, _side(call, x))


def _side(call: Call, x: ir.Value) -> int:
    """Return the dim of a split by columns (rows of a vector), rows, or depth."""
    dim = {"h": 1, "v": 0, "d": 2}[call.name.split(".")[2][0]]
    return 0 if rank(x) == 1 else dim


@converts("aten.unbind.int", "aten.unbind_copy.int")
def unbind(call: Call, x: ir.Value, dim: int) -> list[ir.Value]:
    dim %= rank(x)
    return [select(x, dim, i) for i in range(static_size(x, dim))]


@converts("aten.unfold")
def unfold(call: Call, x: ir.Value, dim: int, size: int, step: int) -> ir.Value:
    """Windows of `size`, `step` apart, as a last dim: one strided slice for each place in it."""
    if rank(x) == 0:
        return reshape(x, [1])
    dim %= rank(x)
    count = (dims(x)[dim] - size) // step + 1
    windows = [unsqueeze(slice_(x, dim, i, count, step), rank(x)) for i in range(size)]
    if not windows or size > 64:
        raise NotModelled
    return build.concat(windows, rank(x))


@converts("aten.diagonal", "aten.diagonal_copy", "aten.linalg_diagonal")
def diagonal(call: Call, x: ir.Value, offset: int, first: int, second: int) -> ir.Value:
    """Flatten the two dims: the diagonal is every (columns + 1)-th element from the offset on."""
    n = rank(x)
    first, second = first % n, second % n
    moved = transpose(x, [*(i for i in range(n) if i not in (first, second)), first, second])
    *batch, rows, columns = dims(moved)
    if not (rows.is_static and columns.is_static):
        raise NotModelled
    down, right = max(-offset, 0), max(offset, 0)
    count = max(min(rows.value - down, columns.value - right), 0)
    flat = reshape(moved, [*batch, rows * columns])
    start = down * columns.value + right if count else 0
    return slice_(flat, len(batch), start, count, columns.value + 1)


@converts("aten.diagonal_scatter")
def diagonal_scatter(
    call: Call, x: ir.Value, source: ir.Value, offset: int, first: int, second: int
) -> ir.Value:
    """Select source, gathered along the rows, where column - row is the offset."""
    n = rank(x)
    first, second = first % n, second % n
    order = [*(i for i in range(n) if i not in (first, second)), first, second]
    moved = transpose(x, order)
    size = dims(moved)
    if dims(source)[-1] == Dim.of(0):
        return x
    rows, columns = build.iota(size[-2:], 0), build.iota(size[-2:], 1)
    distance = build.pointwise("sub", columns, rows)
    hit = build.pointwise("eq", distance, build.number(offset, i64()))
    last = build.number(dims(source)[-1] - 1, i64())
    place = build.iota(size[-2:-1], 0)
    if offset < 0:
        place = build.pointwise("add", place, build.number(offset, i64()))
        place = build.pointwise("maximum", place, build.number(0, i64()))
    by_row = take(build.cast(source, call.element), build.pointwise("minimum", place, last), n - 2)
    value = build.pointwise("select", hit, unsqueeze(by_row, n - 1), moved)
    return transpose(value, [order.index(i) for i in range(n)])


@converts("aten.select_scatter")
def select_scatter(call: Call, x: ir.Value, source: ir.Value, dim: int, index: Any) -> ir.Value:
    dim %= rank(x)
    at = position(call, dims(x)[dim], index)
    return replace_range(x, unsqueeze(build.cast(source, call.element), dim), dim, at, Dim.of(1))


def replace_range(x: ir.Value, source: ir.Value, dim: int, start: Dim, count: Dim) -> ir.Value:
    """Return x with `count` elements of `dim` from `start` on taken from source: a concat."""
    size = list(dims(x))
    size[dim] = count
    parts = [build.broadcast(source, size)]
    rest = dims(x)[dim] - start - count
    if start != Dim.of(0):
        parts.insert(0, slice_(x, dim, 0, start))
    if rest != Dim.of(0):
        parts.append(slice_(x, dim, start + count, rest))
    return build.concat(parts, dim)


@converts("aten.slice_scatter")
def slice_scatter(
    call: Call, x: ir.Value, source: ir.Value, dim: int, start: Any, end: Any, step: int
) -> ir.Value:
    """A concat for step 1; else a scatter of the source at the slice's indices."""
    dim %= rank(x)
    first, last = slice_bounds(call, dims(x)[dim], start, end)
    source = build.cast(source, call.element)
    count = ceildiv(last - first, step)
    if step == 1:
        return replace_range(x, source, dim, first, count)
    if not first.is_static:
        raise NotModelled
    size = list(dims(x))
    size[dim] = count
    indices = build.iota(size, dim, first.value, step)
    return scatter(x, indices, build.broadcast(source, size), dim)

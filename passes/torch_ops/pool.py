"""Pooling over windows of a fixed size."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from metadef import ir
from metadef.dialects.metadef.ops.pool import pool
from metadef.symbolic import Dim

from . import build
from ._windows import Windows, both_ends, flat_positions, windows_of, with_batch, without_batch
from .build import cast, dims, pointwise
from .call import Call
from .dtypes import integer_range, is_float, opmath
from .registry import NotModelled, converts

Ints = Sequence[int]

#: maxima with indices over larger windows are not unrolled
_LIMIT = 64


def _batched(call: Call, x: ir.Value) -> tuple[ir.Value, bool]:
    return with_batch(x, int(call.name.split("pool")[1][0]))


@converts("aten.max_pool1d", "aten.max_pool2d", "aten.max_pool3d")
def max_pool(
    call: Call,
    x: ir.Value,
    kernel: Ints,
    strides: Ints,
    padding: Ints,
    dilations: Ints,
    ceil_mode: bool,
) -> ir.Value:
    x, had = _batched(call, x)
    windows = windows_of(x, kernel, strides, padding, dilations, ceil_mode)
    return without_batch(_pool("max", x, windows), had)


@converts("aten.max_pool2d_with_indices", "aten.max_pool3d_with_indices")
@converts("aten.max_pool1d_with_indices")
def max_pool_with_indices(
    call: Call,
    x: ir.Value,
    kernel: Ints,
    strides: Ints,
    padding: Ints,
    dilations: Ints,
    ceil_mode: bool,
) -> tuple[ir.Value, ir.Value | None]:
    x, had = _batched(call, x)
    windows = windows_of(x, kernel, strides, padding, dilations, ceil_mode)
    if not call.used(1):
        return without_batch(_pool("max", x, windows), had), None
    if math.prod(windows.kernel) > _LIMIT:
        raise NotModelled
    values, indices = _indexed_maxima(x, windows)
    return without_batch(values, had), without_batch(indices, had)


def _pool(fn: str, x: ir.Value, windows: Windows, count_include_pad: bool = True) -> ir.Value:
    return pool(
        fn,
        x,
        windows.kernel,
        strides=windows.strides,
        padding=windows.ends,
        dilations=windows.dilations,
        count_include_pad=count_include_pad,
    )


def _indexed_maxima(x: ir.Value, windows: Windows) -> tuple[ir.Value, ir.Value]:
    """Compare the windows' elements, each place of all windows being one strided slice.

    The index is that of the flattened spatial dims, as torch counts.
    """
    shape, element = dims(x), build.element(x)
    flat = build.reshape(flat_positions(shape[2:]), [1, 1, *shape[2:]])
    low, high = [0, 0, *windows.ends[::2]], [0, 0, *windows.ends[1::2]]
    lowest = float("-inf") if is_float(element) else integer_range(element)[0]
    padded = build.pad(x, low, high, value=lowest)
    where = build.pad(flat, low, high, value=-1)
    counts = windows.counts(x)
    values, positions = [], []
    for offsets in itertools.product(*map(range, windows.kernel)):
        window, place = padded, where
        for i, offset in enumerate(offsets):
            at, step = offset * windows.dilations[i], windows.strides[i]
            window = build.slice_(window, 2 + i, at, counts[i], step)
            place = build.slice_(place, 2 + i, at, counts[i], step)
        values.append(window)
        positions.append(place)
    best, index = values[0], build.broadcast(positions[0], dims(values[0]))
    for value, place in zip(values[1:], positions[1:], strict=True):
        unset = pointwise("lt", index, build.number(0, build.element(index)))
        inside = pointwise("ge", place, build.number(0, build.element(index)))
        wins = pointwise("gt", value, best)
        if is_float(element):
            wins = pointwise("or", wins, pointwise("isnan", value))
        wins = pointwise("and", inside, pointwise("or", unset, wins))
        best = pointwise("select", wins, value, best)
        index = pointwise("select", wins, place, index)
    return best, index


@converts("aten.avg_pool1d", "aten.avg_pool2d", "aten.avg_pool3d")
def avg_pool(
    call: Call,
    x: ir.Value,
    kernel: Ints,
    strides: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None = None,
) -> ir.Value:
    """Means of windows; a divisor of its own, or ceil mode's partial windows, divide the sums."""
    x, had = _batched(call, x)
    element, sizes = build.element(x), dims(x)[2:]
    windows = windows_of(x, kernel, strides, padding, 1, False)
    if divisor is None and not any(windows.padding) and all(map(_holds, windows.kernel, sizes)):
        axes = list(range(2, 2 + len(sizes)))
        mean = build.reduce("mean", cast(x, opmath(element)), axes, keepdim=True)
        return without_batch(cast(mean, element), had)
    if ceil_mode:
        windows = windows_of(x, kernel, strides, padding, 1, True)
    if divisor is None and (windows.ends == both_ends(windows.padding) or not count_include_pad):
        return without_batch(_pool("avg", x, windows, count_include_pad), had)
    wide = opmath(element)
    mean = _pool("avg", cast(x, wide), windows)
    total = pointwise("mul", mean, build.number(math.prod(windows.kernel), wide))
    if divisor is not None:
        counts = build.number(divisor, wide)
    else:
        counts = _window_counts(x, windows, wide)
    return without_batch(cast(pointwise("div", total, counts), element), had)


def _holds(kernel: int | Dim, size: Dim) -> bool:
    """Tell whether one window holds the whole dim: ceil mode takes windows larger than x."""
    extent = Dim.of(kernel)
    return extent.is_static and size.is_static and extent.value >= size.value


def _window_counts(x: ir.Value, windows: Windows, element: ir.Type) -> ir.Value:
    """Return how many elements of each window lie in x or its own (not ceil mode's) padding."""
    rank = len(windows.kernel) + 2
    counts = build.fill([1] * rank, 1, element)
    sizes = zip(windows.kernel, windows.strides, windows.padding, windows.counts(x), strict=True)
    for i, (k, s, p, count) in enumerate(sizes, start=2):
        start = build.iota([count], 0, -p, s)
        end = pointwise("minimum", pointwise("add", start, _int(k)), _int(dims(x)[i] + p))
        held = cast(pointwise("sub", end, start), element)
        counts = pointwise("mul", counts, build.along(held, i, rank))
    return counts


def _int(value: int | Dim) -> ir.Value:
    return build.number(value, ir.IntegerType.get_signless(64))

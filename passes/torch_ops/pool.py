"""Pooling over windows of a fixed size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.pool import pool
from metadef.symbolic import Dim

from . import build
from .build import cast, dims, pointwise, rank, reshape
from .call import Call
from .conv import both_ends, spread
from .dtypes import integer_range, is_float, opmath
from .registry import NotModelled, converts

Ints = Sequence[int]


def spatial_dims(call: Call) -> int:
    return int(call.name.split(".")[2].split("pool")[1][0])


def with_batch(x: ir.Value, spatial: int) -> tuple[ir.Value, bool]:
    """Return x with a batch dim, and whether it had one."""
    had = rank(x) == spatial + 2
    return (x if had else build.unsqueeze(x, 0)), had


def without_batch(x: ir.Value, had: bool) -> ir.Value:
    return x if had else reshape(x, dims(x)[1:])


def _ceil_padding(
    call: Call, x: ir.Value, kernel: Ints, strides: Ints, padding: Ints, dilations: Ints
) -> list[int]:
    """Return (low, high) padding that gives ceil mode's windows.

    A last window that starts in the high padding is left out: `high` grows by less than a stride.
    """
    ends = []
    for i, (k, s, p, d) in enumerate(zip(kernel, strides, padding, dilations, strict=True)):
        size = dims(x)[2 + i]
        if not size.is_static:
            raise NotModelled
        reach = size.value + 2 * p - d * (k - 1) - 1
        count = -(-reach // s) + 1
        if (count - 1) * s >= size.value + p:
            count -= 1
        ends += [p, p + max((count - 1) * s - reach, 0) if count > reach // s + 1 else p]
    return ends


def _max_pool(
    call: Call,
    x: ir.Value,
    kernel: Any,
    strides: Any,
    padding: Any,
    dilations: Any,
    ceil_mode: bool,
) -> ir.Value:
    spatial = spatial_dims(call)
    x, had = with_batch(x, spatial)
    kernel = spread(kernel, spatial)
    steps = spread(strides, spatial) if strides else kernel
    pads, spaces = spread(padding, spatial), spread(dilations, spatial)
    ends = _ceil_padding(call, x, kernel, steps, pads, spaces) if ceil_mode else both_ends(pads)
    result = pool("max", x, kernel, strides=steps, padding=ends, dilations=spaces)
    return without_batch(result, had)


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
    return _max_pool(call, x, kernel, strides, padding, dilations, ceil_mode)


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
    values = None
    if call.used(1):
        return _indexed_max_pool(call, x, kernel, strides, padding, dilations, ceil_mode)
    values = _max_pool(call, x, kernel, strides, padding, dilations, ceil_mode)
    return values, None


def _indexed_max_pool(
    call: Call,
    x: ir.Value,
    kernel: Any,
    strides: Any,
    padding: Any,
    dilations: Any,
    ceil_mode: bool,
) -> tuple[ir.Value, ir.Value]:
    """Stack the windows' elements as a last dim, one strided slice each, and reduce it.

    The index is that of the flattened spatial dims, as torch counts.
    """
    spatial = spatial_dims(call)
    x, had = with_batch(x, spatial)
    sizes = kernel, strides or kernel, padding, dilations
    if math.prod(spread(kernel, spatial)) > 64:
        raise NotModelled
    extents, steps, pads, spaces = (spread(s, spatial) for s in sizes)
    ends = _ceil_padding(call, x, extents, steps, pads, spaces) if ceil_mode else both_ends(pads)
    shape = dims(x)
    flat = build.reshape(flat_positions(shape[2:]), [1, 1, *shape[2:]])
    low, high = [0, 0, *ends[::2]], [0, 0, *ends[1::2]]
    element = build.element(x)
    lowest = float("-inf") if is_float(element) else integer_range(element)[0]
    padded = build.pad(x, low, high, value=lowest)
    where = build.pad(flat, low, high, value=-1)
    counts = [
        (shape[2 + i] + ends[2 * i] + ends[2 * i + 1] - spaces[i] * (extents[i] - 1) - 1)
        // steps[i]
        + 1
        for i in range(spatial)
    ]
    values, positions = [], []
    for offsets in _offsets(extents):
        window, place = padded, where
        for i, offset in enumerate(offsets):
            at = offset * spaces[i]
            window = build.slice_(window, 2 + i, at, counts[i], steps[i])
            place = build.slice_(place, 2 + i, at, counts[i], steps[i])
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
    return without_batch(best, had), without_batch(index, had)


def flat_positions(sizes: Sequence[Dim]) -> ir.Value:
    """Return the row-major position of each element of `sizes`."""
    count = Dim.of(1)
    for d in sizes:
        count = count * d
    return reshape(build.iota([count], 0), sizes)


def _offsets(kernel: Sequence[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for k in kernel:
        found = [(*f, i) for f in found for i in range(k)]
    return found


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
    spatial = spatial_dims(call)
    x, had = with_batch(x, spatial)
    extents = spread(kernel, spatial)
    steps, pads = spread(strides, spatial) if strides else extents, spread(padding, spatial)
    sizes = dims(x)[2:]
    if divisor is None and not any(pads) and all(map(_holds, extents, sizes)):
        axes = list(range(2, 2 + spatial))
        mean = build.reduce("mean", cast(x, opmath(build.element(x))), axes, keepdim=True)
        return without_batch(cast(mean, build.element(x)), had)
    plain = both_ends(pads)
    ends = _ceil_padding(call, x, extents, steps, pads, [1] * spatial) if ceil_mode else plain
    if divisor is None and (ends == plain or not count_include_pad):
        result = pool(
            "avg", x, extents, strides=steps, padding=ends, count_include_pad=count_include_pad
        )
        return without_batch(result, had)
    wide = cast(x, opmath(build.element(x)))
    area = 1
    for k in extents:
        area *= k
    mean = pool("avg", wide, extents, strides=steps, padding=ends, count_include_pad=True)
    total = pointwise("mul", mean, build.number(area, build.element(wide)))
    if divisor is not None:
        counts = build.number(divisor, build.element(wide))
    else:
        counts = _window_counts(x, extents, steps, pads, ends, build.element(wide))
    return without_batch(cast(pointwise("div", total, counts), build.element(x)), had)


def _holds(kernel: int | Dim, size: Dim) -> bool:
    """Tell whether one window holds the whole dim: ceil mode takes windows larger than x."""
    extent = Dim.of(kernel)
    return extent.is_static and size.is_static and extent.value >= size.value


def _window_counts(
    x: ir.Value, kernel: Ints, strides: Ints, padding: Ints, ends: Ints, element: ir.Type
) -> ir.Value:
    """Return how many elements of each window lie in x or its own (not ceil mode's) padding."""
    counts = build.fill([1] * (len(kernel) + 2), 1, element)
    for i, (k, s, p) in enumerate(zip(kernel, strides, padding, strict=True)):
        size = dims(x)[2 + i]
        windows = (size + ends[2 * i] + ends[2 * i + 1] - k) // s + 1
        start = build.iota([windows], 0, -p, s)
        end = pointwise("minimum", pointwise("add", start, _int(k)), _int(size + p))
        held = cast(pointwise("sub", end, start), element)
        counts = pointwise("mul", counts, build.along(held, 2 + i, len(kernel) + 2))
    return counts


def _int(value: int | Dim) -> ir.Value:
    return build.number(value, ir.IntegerType.get_signless(64))

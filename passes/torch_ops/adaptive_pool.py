"""Pooling to a given size: the windows follow from it and may overlap."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.take import take
from metadef.symbolic import Dim, ceildiv

from . import build
from ._windows import flat_positions, with_batch, without_batch
from .build import cast, dims, rank, reduce, reshape, slice_
from .call import Call
from .dtypes import opmath
from .registry import NotModelled, converts

#: more windows than that are not unrolled
_LIMIT = 256


@converts("aten.adaptive_avg_pool1d", "aten.adaptive_avg_pool2d", "aten.adaptive_avg_pool3d")
@converts("aten._adaptive_avg_pool2d", "aten._adaptive_avg_pool3d")
def adaptive_avg_pool(call: Call, x: ir.Value, sizes: Sequence[Any]) -> ir.Value:
    return _adaptive(x, "avg", sizes)


@converts("aten.adaptive_max_pool1d", "aten.adaptive_max_pool2d", "aten.adaptive_max_pool3d")
def adaptive_max_pool(call: Call, x: ir.Value, sizes: Sequence[Any]) -> tuple[ir.Value, Any]:
    if call.used(1):
        return _indexed_max_pool(x, sizes)
    return _adaptive(x, "max", sizes), None


def _indexed_max_pool(x: ir.Value, sizes: Sequence[Any]) -> tuple[ir.Value, ir.Value]:
    """Reduce each window by itself; the index is that of x's flattened spatial dims."""
    first = rank(x) - len(sizes)
    inputs = [_static(d) for d in dims(x)[first:]]
    if not all(isinstance(s, int) for s in sizes) or not 0 < math.prod(sizes) <= _LIMIT:
        raise NotModelled
    positions = flat_positions(dims(x)[first:])
    values, indices = [], []
    for place in itertools.product(*(range(s) for s in sizes)):
        window, where = x, positions
        for i, (at, size, length) in enumerate(zip(place, sizes, inputs, strict=True)):
            start, count = _window(at, size, length)
            window = slice_(window, first + i, start, count)
            where = slice_(where, i, start, count)
        count = math.prod(d.value for d in dims(where))
        flat = reshape(window, [*dims(x)[:first], count])
        values.append(reduce("max", flat, [first], keepdim=True))
        at_most = reduce("argmax", flat, [first], keepdim=True)
        indices.append(take(reshape(where, [count]), at_most, 0))
    shape = [*dims(x)[:first], *sizes]
    return (
        reshape(build.concat(values, first), shape),
        reshape(build.concat(indices, first), shape),
    )


def _static(dim: Dim) -> int:
    if not dim.is_static:
        raise NotModelled
    return dim.value


def _window(at: int, size: int, length: int) -> tuple[int, int]:
    """Return start and length of window `at`, [floor(at n / size), ceil((at + 1) n / size))."""
    start = at * length // size
    return start, ceildiv((at + 1) * length, size).value - start


def _adaptive(x: ir.Value, fn: str, sizes: Sequence[Any]) -> ir.Value:
    """Pool to `sizes`, None for a dim that stays as it is."""
    spatial = len(sizes)
    wide = cast(x, opmath(build.element(x))) if fn == "avg" else x
    first = rank(x) - spatial
    inputs = dims(x)[first:]
    reduction = "mean" if fn == "avg" else "max"
    if all(isinstance(s, int) and s == 1 for s in sizes):
        value = reduce(reduction, wide, list(range(first, rank(x))), keepdim=True)
        return cast(value, build.element(x))
    kernel = _even_windows(inputs, sizes)
    if kernel is not None:
        batched, had = with_batch(x, spatial)
        return without_batch(pool(fn, batched, kernel, strides=kernel), had)
    for i, size in enumerate(sizes):
        wide = _adaptive_dim(wide, reduction, first + i, size)
    return cast(wide, build.element(x))


def _even_windows(inputs: Sequence[Dim], sizes: Sequence[Any]) -> list[int] | None:
    """Return the kernel of windows that all have one size and do not overlap, or None."""
    kernel = []
    for d, s in zip(inputs, sizes, strict=True):
        if not d.is_static or not isinstance(s, int) or not s or not d.value or d.value % s:
            return None
        kernel.append(d.value // s)
    return kernel


def _adaptive_dim(x: ir.Value, fn: str, dim: int, size: Any) -> ir.Value:
    """Pool one dim to `size`, a slice for each window (the windows overlap)."""
    length = dims(x)[dim]
    if length == Dim.of(size):
        return x
    if not isinstance(size, int) or not 0 < size <= _LIMIT or not length.is_static:
        raise NotModelled
    windows = []
    for i in range(size):
        start, count = _window(i, size, length.value)
        windows.append(reduce(fn, slice_(x, dim, start, count), [dim], keepdim=True))
    return build.concat(windows, dim)

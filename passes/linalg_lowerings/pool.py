"""Pooling: a fill and one generic over the windows; avg divides in an expression."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integers, text
from metadef.dialects.metadef.windows import spatial_axes
from metadef.symbolic import Dim

from .assemble import pad_constant
from .conv import Window
from .expression import Constant, Expr, Load, Value, apply, cast, index, narrow, size, substitute
from .kernel import Kernel, accumulator_type, result_type
from .reduce import combiner, identity


def lower_pool(kernel: Kernel, op: Any) -> list[Value]:
    """max over padding of -inf, or sum over padding of 0 and a division by the window's count."""
    dims, element = result_type(op)
    fn, taps = text(op, "fn"), integers(op, "kernel")
    strides, dilations = integers(op, "strides"), integers(op, "dilations")
    padding = integers(op, "padding")
    axes = list(spatial_axes(text(op, "layout"), len(dims)))
    x = kernel.value(op.operation.operands[0])
    plain_dims = x.dims
    name = "max" if fn == "max" else "sum"
    if any(padding):
        low, high = [0] * len(dims), [0] * len(dims)
        for i, axis in enumerate(axes):
            low[axis], high[axis] = padding[2 * i], padding[2 * i + 1]
        x = pad_constant(kernel, x, low, high, identity(name, element))
    elif not isinstance(x.expr, Load):
        x = kernel.loaded(op.operation.operands[0])
    windows = [Window(s, d) for s, d in zip(strides, dilations, strict=True)]
    result = op.operation.results[0] if fn == "max" else None
    value = _fold_windows(kernel, x, name, dims, axes, taps, windows, result)
    if fn == "max":
        return [value]
    counted = boolean(op, "count_include_pad") or not any(padding)
    count: Expr = Constant(value.element, 1)
    for i, axis in enumerate(axes):
        if counted:
            assert isinstance(count, Constant)
            count = Constant(value.element, count.value * taps[i])
        else:
            inside = _taps_inside(axis, plain_dims[axis], padding[2 * i], taps[i], windows[i])
            count = apply("mul", count, cast(inside, value.element))
    if isinstance(count, Constant):
        mean = apply("mul", value.expr, Constant(value.element, 1 / count.value))
    else:
        mean = apply("div", value.expr, count)
    return [Value(dims, narrow(mean, element))]


def _fold_windows(
    kernel: Kernel,
    x: Value,
    fn: str,
    dims: tuple[Dim, ...],
    axes: list[int],
    taps: list[int],
    windows: list[Window],
    result: ir.Value | None,
) -> Value:
    rank = len(dims)
    loops = [*dims, *(Dim.of(t) for t in taps)]
    accumulator = accumulator_type(x.element) if fn == "sum" else x.element
    target, map_ = kernel.destination(result, dims, accumulator)
    start = kernel.fill(target, accumulator, identity(fn, accumulator))
    positions = [ir.AffineExpr.get_dim(i) for i in range(rank)]
    for i, axis in enumerate(axes):
        positions[axis] = windows[i].position(positions[axis], ir.AffineExpr.get_dim(rank + i))
    combine = combiner(fn, accumulator)
    (tensor,) = kernel.generic(
        loops,
        ["parallel"] * rank + ["reduction"] * len(taps),
        [cast(substitute(x.expr, positions, len(loops)), accumulator)],
        [(start, map_, accumulator)],
        lambda scalars, sums: [combine(kernel.scalars(), sums[0], scalars[0])],
    )
    return Value(dims, Load(accumulator, tensor, tuple(dims[e.position] for e in map_), map_))


def _taps_inside(axis: int, extent: Dim, low: int, taps: int, window: Window) -> Expr:
    """Return how many taps of output i read x and not padding: those with 0 <= i s - low + t < n.

    Pooling with an uncounted padding has no dilation (torch's avg_pool has none).
    """
    assert window.dilation == 1
    first = index(ir.AffineExpr.get_dim(axis) * window.stride - low)
    last = apply("minimum", apply("add", first, Constant(first.element, taps)), size(extent))
    return apply("sub", last, apply("maximum", first, Constant(first.element, 0)))

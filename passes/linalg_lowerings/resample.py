"""Resampling: source coordinates from the output index, and loads weighted by their distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, reals, text
from metadef.symbolic import Dim, same

from .expression import Constant, Expr, Value, apply, cast, index, narrow, size
from .expression import boolean as i1
from .indexing import read_at
from .kernel import Kernel, accumulator_type, result_type

#: source positions of one dim, each with its weight
Taps = list[tuple[Expr, Expr]]


def lower_resample(kernel: Kernel, op: Any) -> list[Value]:
    """One expression: the sum over the taps of all spatial dims, the last dim innermost."""
    dims, element = result_type(op)
    x = op.operation.operands[0]
    wide = accumulator_type(element) if isinstance(element, ir.FloatType) else ir.F32Type.get()
    corners = boolean(op, "align_corners")
    taps = _TAPS[text(op, "mode")]
    source = kernel.value(x).dims
    axes: list[Taps] = []
    for i, scale in enumerate(reals(op, "scales")):
        axis = Axis(i + 2, source[i + 2], dims[i + 2], scale, corners, wide)
        axes.append(taps(axis))
    batch = [index(ir.AffineExpr.get_dim(i)) for i in range(2)]

    def read(at: list[Expr], rest: list[Taps]) -> Expr:
        if not rest:
            return cast(read_at(kernel, x, [*batch, *at]), wide)
        total: Expr | None = None
        for position, weight in rest[0]:
            part = read([*at, position], rest[1:])
            part = part if len(rest[0]) == 1 else apply("mul", weight, part)
            total = part if total is None else apply("add", total, part)
        assert total is not None
        return total

    if text(op, "mode") == "nearest":
        return [Value(dims, read_at(kernel, x, [*batch, *(a[0][0] for a in axes)]))]
    return [Value(dims, narrow(read([], axes), element))]


class Axis:
    """One spatial dim: input and output extents, and the coordinate map between them."""

    def __init__(
        self, dim: int, extent: Dim, out: Dim, scale: float, corners: bool, type_: ir.Type
    ) -> None:
        self.position = index(ir.AffineExpr.get_dim(dim))
        self.extent, self.out = extent, out
        self.type = type_
        self.corners = corners
        self.step = self._corner_step() if corners else self._step(scale)

    def number(self, value: float) -> Constant:
        return Constant(self.type, value)

    def whole(self, value: int) -> Constant:
        return Constant(ir.IndexType.get(), value)

    def _step(self, scale: float) -> Expr:
        """Return in / out where that is the scale, else 1 / scale, in the coordinates' type."""
        if self.extent.is_static and self.out.is_static:
            exact = self.out.value / self.extent.value
            if self.out.value and abs(exact - scale) <= 1e-12 * scale:
                return self.number(self._rounded(self.extent.value, self.out.value))
        return self.number(self._rounded(1.0, scale))

    def _rounded(self, a: float, b: float) -> float:
        """Return a / b as eager mode has it: f32 for all but f64."""
        if isinstance(self.type, ir.F64Type):
            return a / b
        return float(np.float32(a) / np.float32(b)) if a != 1.0 else float(np.float32(1.0 / b))

    def _corner_step(self) -> Expr:
        """(in - 1) / (out - 1), 0 for one output."""
        if self.extent.is_static and self.out.is_static:
            if self.out.value <= 1:
                return self.number(0.0)
            return self.number(self._rounded(self.extent.value - 1, self.out.value - 1))
        inside = cast(apply("sub", size(self.extent), self.whole(1)), self.type)
        outside = cast(apply("sub", size(self.out), self.whole(1)), self.type)
        single = apply("le", outside, self.number(0.0), element=i1())
        return apply("select", single, self.number(0.0), apply("div", inside, outside))

    def last(self) -> Expr:
        return apply("sub", size(self.extent), self.whole(1))

    def inside(self, position: Expr) -> Expr:
        return apply("maximum", apply("minimum", position, self.last()), self.whole(0))

    def source(self) -> Expr:
        """Return the real source coordinate of output o: o step, or (o + 0.5) step - 0.5."""
        output = cast(self.position, self.type)
        if self.corners:
            return apply("mul", output, self.step)
        half = self.number(0.5)
        return apply("sub", apply("mul", apply("add", output, half), self.step), half)


def _nearest(axis: Axis) -> Taps:
    if same(axis.extent, axis.out):
        return [(axis.position, axis.number(1.0))]
    scaled = apply("floor", apply("mul", cast(axis.position, axis.type), axis.step))
    return [(axis.inside(cast(scaled, ir.IndexType.get())), axis.number(1.0))]


def _linear(axis: Axis) -> Taps:
    if same(axis.extent, axis.out):
        return [(axis.position, axis.number(1.0))]
    source = apply("maximum", axis.source(), axis.number(0.0))
    floor = apply("floor", source)
    low = axis.inside(cast(floor, ir.IndexType.get()))
    high = apply("minimum", apply("add", low, axis.whole(1)), axis.last())
    weight = apply("sub", source, floor)
    return [(low, apply("sub", axis.number(1.0), weight)), (high, weight)]


def _cubic(axis: Axis) -> Taps:
    """Keys' convolution (IEEE ASSP 1981) with a = -0.75."""
    source = axis.source()
    floor = apply("floor", source)
    t = apply("sub", source, floor)
    first = cast(floor, ir.IndexType.get())
    rest = apply("sub", axis.number(1.0), t)
    weights = [
        _outer(axis, apply("add", t, axis.number(1.0))),
        _inner(axis, t),
        _inner(axis, rest),
        _outer(axis, apply("add", rest, axis.number(1.0))),
    ]
    offsets = (-1, 0, 1, 2)
    positions = [axis.inside(apply("add", first, axis.whole(o))) for o in offsets]
    return list(zip(positions, weights, strict=True))


_A = -0.75


def _inner(axis: Axis, x: Expr) -> Expr:
    """((a + 2) x - (a + 3)) x^2 + 1, for |x| <= 1."""
    linear = apply("sub", apply("mul", axis.number(_A + 2), x), axis.number(_A + 3))
    return apply("add", apply("mul", apply("mul", linear, x), x), axis.number(1.0))


def _outer(axis: Axis, x: Expr) -> Expr:
    """((a x - 5 a) x + 8 a) x - 4 a, for 1 < |x| < 2."""
    value = apply("sub", apply("mul", axis.number(_A), x), axis.number(5 * _A))
    value = apply("add", apply("mul", value, x), axis.number(8 * _A))
    return apply("sub", apply("mul", value, x), axis.number(4 * _A))


_TAPS: dict[str, Callable[[Axis], Taps]] = {"nearest": _nearest, "linear": _linear, "cubic": _cubic}

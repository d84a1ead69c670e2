"""The transforms around a convolution by spectra: straight-line code for a tile along one axis."""

from __future__ import annotations

from typing import Any

from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.fourier import points_of, signal, spectrum

from .expression import Constant, Expr, Tiled, Value, apply, constant_expr, dim_exprs, substitute
from .image_tiles import Position, padded_read, written_apart
from .kernel import Kernel, result_type


class _Expressions:
    """Arithmetic that makes expressions."""

    def add(self, a: Expr, b: Expr) -> Expr:
        return apply("add", a, b)

    def sub(self, a: Expr, b: Expr) -> Expr:
        return apply("sub", a, b)

    def scale(self, factor: float, a: Expr) -> Expr:
        return apply("mul", Constant(a.element, factor), a)

    def fma(self, factor: float, a: Expr, b: Expr) -> Expr:
        return apply("fma", Constant(a.element, factor), a, b)


def lower_fourier_input(kernel: Kernel, op: Any) -> list[Value]:
    """One generic over [n, h, w, c], tiles along an axis, that writes each point apart."""
    axis, length, low = integer(op, "axis"), integer(op, "length"), integers(op, "padding")[0]
    step = length - integer(op, "window") + 1
    tensor, x = kernel.stored(op.operation.operands[0])
    extent, tiles = x.dims[axis], result_type(op)[0][axis + 1]
    positions = [Position(axis, step, i - low, extent, tiles) for i in range(length)]
    values = [padded_read(tensor, x, [position]) for position in positions]
    return written_apart(kernel, op, spectrum(values, _Expressions()))


def lower_fourier_output(kernel: Kernel, op: Any) -> list[Value]:
    """No code yet: an expression for each element of a tile, of the products at its place."""
    axis, length, window = (integer(op, name) for name in ("axis", "length", "window"))
    x = kernel.value(op.operation.operands[0])
    dims, element = result_type(op)

    def read(p: int) -> Expr:
        return substitute(x.expr, [constant_expr(p), *dim_exprs(4)], 4)

    parts = signal([read(p) for p in range(points_of(length))], _Expressions())[window - 1 :]
    sides = (len(parts), 1) if axis == 1 else (1, len(parts))
    return [Value(dims, Tiled(element, sides, tuple(parts), dim_exprs(4)))]

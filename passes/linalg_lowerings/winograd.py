"""The transforms around a Winograd convolution: straight-line code for a tile, channels as lanes.

The input's reads zero where it is padded. The output's is an expression of its own kind, `Tiled`,
so that what follows it is computed on a whole tile in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.winograd import Matrix, inputs_of, transforms
from metadef.symbolic import Dim

from .expression import (
    Constant,
    Expr,
    Extract,
    Load,
    Tiled,
    Value,
    apply,
    boolean,
    constant_expr,
    dim_exprs,
    index,
    substitute,
)
from .kernel import Kernel, result_type, tensor_value

Grid = list[list[Expr]]


def lower_winograd_input(kernel: Kernel, op: Any) -> list[Value]:
    """One generic over [n, i, j, c] that reads a tile and writes each of its elements apart."""
    tile, padding = integer(op, "tile"), integers(op, "padding")
    tensor, x = kernel.stored(op.operation.operands[0])
    dims, element = result_type(op)
    n, c = ir.AffineExpr.get_dim(0), ir.AffineExpr.get_dim(3)
    sides = range(inputs_of(tile))
    rows = [_Position(1, tile, i - padding[0], x.dims[1], dims[2]) for i in sides]
    columns = [_Position(2, tile, j - padding[2], x.dims[2], dims[3]) for j in sides]

    def read(row: _Position, column: _Position) -> Expr:
        inside = [*row.inside(), *column.inside()]
        if not inside:
            return Load(element, tensor, x.dims, (n, row.at, column.at, c))
        positions = (index(n), row.clamped(), column.clamped(), index(c))
        value: Expr = Extract(element, tensor, positions)
        for condition in inside:
            value = apply("select", condition, value, Constant(element, 0))
        return value

    parts = _sandwich(transforms(tile).input, [[read(r, s) for s in columns] for r in rows])
    target = kernel.plain_destination(op.operation.results[0], dims, element)
    starts = [[Dim.of(p)] + [Dim.of(0)] * 4 for p in range(len(parts))]
    sizes = [Dim.of(1), *dims[1:]]
    slices = [kernel.extract_slice(target, start, sizes, [1] * 5) for start in starts]
    map_ = (constant_expr(0), *dim_exprs(4))
    outs = [(part, map_, element) for part in slices]
    written = kernel.generic(dims[1:], ["parallel"] * 4, parts, outs)
    for part, start in zip(written, starts, strict=True):
        target = kernel.insert_slice(part, target, start, sizes, [1] * 5)
    return [tensor_value(target, dims, element)]


class _Position:
    """Where element `offset` of a tile is along an axis; tile t of `tiles` begins at `tile` t."""

    def __init__(self, axis: int, tile: int, offset: int, extent: Dim, tiles: Dim) -> None:
        self.at = ir.AffineExpr.get_dim(axis) * tile + offset
        self._last = extent.value - 1
        self._low = offset < 0
        self._high = (tiles.value - 1) * tile + offset > self._last

    def inside(self) -> list[Expr]:
        """Return what must hold for the element to be in the image, where it is not always."""
        at = index(self.at)
        found: list[Expr] = []
        if self._low:
            found.append(apply("ge", at, _number(0), element=boolean()))
        if self._high:
            found.append(apply("le", at, _number(self._last), element=boolean()))
        return found

    def clamped(self) -> Expr:
        at: Expr = index(self.at)
        if self._high:
            at = apply("minimum", at, _number(self._last))
        return apply("maximum", at, _number(0)) if self._low else at


def lower_winograd_output(kernel: Kernel, op: Any) -> list[Value]:
    """No code yet: an expression for each element of a tile, of the products at its place."""
    tile = integer(op, "tile")
    x = kernel.loaded(op.operation.operands[0])
    dims, element = result_type(op)
    side = inputs_of(tile)

    def read(p: int) -> Expr:
        return substitute(x.expr, [constant_expr(p), *dim_exprs(4)], 4)

    products = [[read(a * side + b) for b in range(side)] for a in range(side)]
    parts = _sandwich(transforms(tile).output, products)
    return [Value(dims, Tiled(element, tile, tuple(parts), dim_exprs(4)))]


def _sandwich(matrix: Matrix, grid: Grid) -> list[Expr]:
    """Return the elements of `matrix grid matrix'`, row by row."""
    found = []
    for line in matrix:
        row = [_combine(line, column) for column in zip(*grid, strict=True)]
        found += [_combine(other, row) for other in matrix]
    return found


def _combine(factors: Sequence[float], terms: Sequence[Expr]) -> Expr:
    """Return the sum of products; a factor of 1 costs nothing."""
    used = [(f, t) for f, t in zip(factors, terms, strict=True) if f]
    # Begin with a term that needs no product.
    used.sort(key=lambda pair: pair[0] != 1)
    total: Expr | None = None
    for factor, term in used:
        number = Constant(term.element, factor)
        if total is None:
            total = term if factor == 1 else apply("mul", number, term)
        elif factor in (1, -1):
            total = apply("add" if factor == 1 else "sub", total, term)
        else:
            total = apply("fma", number, term, total)
    assert total is not None, "a matrix without zero rows"
    return total


def _number(value: int) -> Constant:
    return Constant(ir.IndexType.get(), value)

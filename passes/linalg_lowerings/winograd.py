"""The transforms around a Winograd convolution: straight-line code for a tile, channels as lanes.

The input's reads zero where it is padded. The output's is an expression of its own kind, `Tiled`,
so that what follows it is computed on a whole tile in registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.winograd import Matrix, inputs_of, transforms

from .expression import Constant, Expr, Tiled, Value, apply, constant_expr, dim_exprs, substitute
from .image_tiles import Position, padded_read, written_apart
from .kernel import Kernel, result_type

Grid = list[list[Expr]]


def lower_winograd_input(kernel: Kernel, op: Any) -> list[Value]:
    """One generic over [n, i, j, c] that reads a tile and writes each of its elements apart."""
    tile, padding = integer(op, "tile"), integers(op, "padding")
    tensor, x = kernel.stored(op.operation.operands[0])
    dims, _ = result_type(op)
    sides = range(inputs_of(tile))
    rows = [Position(1, tile, i - padding[0], x.dims[1], dims[2]) for i in sides]
    columns = [Position(2, tile, j - padding[2], x.dims[2], dims[3]) for j in sides]
    grid = [[padded_read(tensor, x, [r, s]) for s in columns] for r in rows]
    return written_apart(kernel, op, _sandwich(transforms(tile).input, grid))


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
    return [Value(dims, Tiled(element, (tile, tile), tuple(parts), dim_exprs(4)))]


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

"""Values whose elements are computed tile by tile: one generic writes a whole tile at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from metadef import ir
from metadef.symbolic import Dim

from .expression import AffineExprs, Expr, Load, Tiled, Value, dim_exprs, rebuild, substitute_all

if TYPE_CHECKING:
    from .kernel import Kernel


@dataclass(frozen=True)
class _Span:
    """`count` tiles from tile `first` on along an axis, of which `used` elements are there."""

    first: int
    count: int
    used: int


@dataclass(frozen=True)
class _Element:
    """An element of a tile: the first one of its kind along h and w, and values there."""

    h: int
    w: int
    exprs: list[Expr]


def compute_tiles(
    kernel: Kernel,
    tiled: Tiled,
    values: Sequence[Value],
    targets: Sequence[tuple[ir.Value, AffineExprs]],
) -> list[ir.Value]:
    """Write values that read the elements of `tiled` to `targets`; return the new tensors.

    One generic over [n, tile row, tile column, c] for whole tiles, and one each for those that the
    lower edge, the right edge and the corner cut off. Each element of a tile goes to a slice of the
    target of its own.
    """
    # Dim space[k] of the values is the k-th of the tiles' n, h, w, c.
    space = [e.position for e in tiled.map]
    n, h, w, c = [values[0].dims[d] for d in space]
    tensors = [tensor for tensor, _ in targets]
    for rows in _spans(h, tiled.sides[0]):
        for columns in _spans(w, tiled.sides[1]):
            loops = [n, Dim.of(rows.count), Dim.of(columns.count), c]
            part = replace(tiled, parts=_parts_of(kernel, tiled, loops, rows, columns))
            exprs: list[Expr] = []
            outs: list[tuple[ir.Value, AffineExprs, ir.Type]] = []
            slices: list[tuple[int, list[Dim], list[Dim], list[int]]] = []
            for element in _elements(part, space, [v.expr for v in values], rows, columns):
                exprs += element.exprs
                starts = [Dim.of(s) for s in (0, element.h, element.w, 0)]
                steps = [1, *tiled.sides, 1]
                for k, (_, map_) in enumerate(targets):
                    axes = [space.index(e.position) for e in map_]
                    where = [starts[a] for a in axes], [loops[a] for a in axes]
                    slices.append((k, *where, [steps[a] for a in axes]))
                    target = kernel.extract_slice(tensors[k], *slices[-1][1:])
                    written = tuple(ir.AffineExpr.get_dim(a) for a in axes)
                    outs.append((target, written, values[k].element))
            results = kernel.generic(loops, ["parallel"] * 4, exprs, outs)
            for (k, begin, sizes, by), result in zip(slices, results, strict=True):
                tensors[k] = kernel.insert_slice(result, tensors[k], begin, sizes, by)
    return tensors


def _spans(extent: Dim, side: int) -> list[_Span]:
    """Split an axis into its whole tiles and the one that is cut off."""
    whole, rest = divmod(extent.value, side)
    spans = [_Span(0, whole, side)] if whole else []
    return [*spans, _Span(whole, 1, rest)] if rest else spans


def _parts_of(
    kernel: Kernel, tiled: Tiled, loops: Sequence[Dim], rows: _Span, columns: _Span
) -> tuple[Expr, ...]:
    """Return the elements of a tile where the loops count the tiles of two spans."""
    _, i, j, _ = dim_exprs(4)
    first = {i: Dim.of(rows.first), j: Dim.of(columns.first)}
    slices: dict[ir.Value, Load] = {}

    def leaf(node: Expr) -> Expr:
        if not isinstance(node, Load):
            return node
        if node.tensor not in slices:
            starts = [first.get(e, Dim.of(0)) for e in node.map]
            sizes = [
                loops[e.position] if e in first else d
                for e, d in zip(node.map, node.dims, strict=True)
            ]
            steps = [1] * len(sizes)
            part = kernel.extract_slice(node.tensor, starts, sizes, steps)
            slices[node.tensor] = replace(node, tensor=part, dims=tuple(sizes))
        return replace(slices[node.tensor], map=node.map)

    return tuple(rebuild(tiled.parts, leaf))


def _elements(
    tiled: Tiled, space: Sequence[int], exprs: Sequence[Expr], rows: _Span, columns: _Span
) -> Iterator[_Element]:
    """Give `exprs` at each element of the spans' tiles, over [n, tile row, tile column, c]."""
    n, i, j, c = dim_exprs(4)
    height, width = tiled.sides
    for a in range(rows.used):
        for b in range(columns.used):
            h, w = rows.first * height + a, columns.first * width + b
            place = [n, i * height + h, j * width + w, c]
            moved = substitute_all(exprs, [place[space.index(d)] for d in range(4)], 4)
            yield _Element(h, w, _with_part(moved, tiled.parts[a * width + b]))


def _with_part(exprs: Sequence[Expr], part: Expr) -> list[Expr]:
    return rebuild(exprs, lambda node: part if isinstance(node, Tiled) else node)

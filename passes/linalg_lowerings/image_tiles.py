"""What transforms of an image's tiles share: padded reads, and results that lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.symbolic import Dim

from .expression import (
    Constant,
    Expr,
    Extract,
    Load,
    Value,
    apply,
    boolean,
    constant_expr,
    dim_exprs,
    index,
)
from .kernel import Kernel, result_type, tensor_value


class Position:
    """Where element `offset` of a tile is along an axis; tile t of `tiles` begins at `step` t."""

    def __init__(self, axis: int, step: int, offset: int, extent: Dim, tiles: Dim) -> None:
        self.axis = axis
        # The only tile stands still: of tiles one apart there would else seem to be `extent`.
        only = tiles.value == 1
        self.at = constant_expr(offset) if only else ir.AffineExpr.get_dim(axis) * step + offset
        self._ambiguous = not only and step == 1 and offset == 0
        self._last = extent.value - 1
        highest = (tiles.value - 1) * step + offset
        self._low = offset < 0
        self._high = highest > self._last
        self.outside = offset > self._last or highest < 0

    def inside(self) -> list[Expr]:
        """Return what must hold for the element to be in the image, where it is not always."""
        at = index(self.at)
        found: list[Expr] = []
        if self._low:
            found.append(apply("ge", at, _number(0), element=boolean()))
        if self._high:
            found.append(apply("le", at, _number(self._last), element=boolean()))
        return found

    @property
    def is_plain(self) -> bool:
        """Tell whether the position is always in the image, and not taken for a whole axis."""
        return not (self._low or self._high or self._ambiguous)

    def clamped(self) -> Expr:
        at: Expr = index(self.at)
        if self._high:
            at = apply("minimum", at, _number(self._last))
        return apply("maximum", at, _number(0)) if self._low else at


def padded_read(tensor: ir.Value, x: Value, positions: Sequence[Position]) -> Expr:
    """Return an element of x [n, h, w, c], which `tensor` holds, where some axes' positions are of
    tiles: 0 beside the image."""
    if any(p.outside for p in positions):
        return Constant(x.element, 0)
    places: list[ir.AffineExpr] = list(dim_exprs(4))
    if all(p.is_plain for p in positions):
        for p in positions:
            places[p.axis] = p.at
        return Load(x.element, tensor, x.dims, tuple(places))
    clamped: list[Expr] = [index(place) for place in places]
    for p in positions:
        clamped[p.axis] = p.clamped()
    value: Expr = Extract(x.element, tensor, tuple(clamped))
    for condition in [c for p in positions for c in p.inside()]:
        value = apply("select", condition, value, Constant(x.element, 0))
    return value


def written_apart(kernel: Kernel, op: Any, parts: Sequence[Expr]) -> list[Value]:
    """Write an op's result [p, n, i, j, c] by one generic over [n, i, j, c] of all `parts`."""
    dims, element = result_type(op)
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


def _number(value: int) -> Constant:
    return Constant(ir.IndexType.get(), value)

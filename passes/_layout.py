"""The state of `propagate-layout`'s sweep: which values are transposes on their way down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.shapes import shape_of
from metadef.symbolic import Dim, product

from ._buffers import element_bytes, owner_of
from ._permutations import Perm, compose, inverse, is_identity
from ._reshapes import moves_only_ones, reshaped

#: what a symbolic dim is taken to be when two ways are compared
_TYPICAL_DIM = 16


class Sweep:
    """`views[v] = (x, perm)` says that v is `transpose(x, perm)`; `once`: known before any call.

    `layout_of` says for an op over windows which layout it gets.
    """

    def __init__(self, block: ir.Block, layout_of: Callable[[Sweep, Any], str]) -> None:
        self.block = block
        self.layout_of = partial(layout_of, self)
        self.views: dict[ir.Value, tuple[ir.Value, Perm]] = {}
        self.once: set[ir.Value] = set()
        self._made: dict[tuple[ir.Value, Perm], ir.Value] = {}

    def view(self, source: ir.Value, perm: Perm) -> ir.Value:
        """Build `transpose(source, perm)`, which the ops that read it will try to sink."""
        dims = shape_of(source).dims
        if is_identity(perm):
            return source
        if moves_only_ones(perm, dims):
            return reshaped(source, [dims[p] for p in perm])
        value = transpose(source, perm)
        self.views[value] = (source, perm)
        return value

    def source_of(self, value: ir.Value, perm: Perm) -> ir.Value:
        """Return x with `transpose(x, perm) == value`, built right after `value` if need be."""
        back = inverse(perm)
        if value in self.views:
            source, inner = self.views[value]
            value, back = source, compose(inner, back)
        if is_identity(back):
            return value
        key = (value, back)
        if key not in self._made:
            owner = owner_of(value)
            if owner is None:
                point = ir.InsertionPoint.at_block_begin(self.block)
            else:
                point = ir.InsertionPoint.after(owner)
            with point:
                self._made[key] = self.reorder(value, back)
            if value in self.once:
                self.once.add(self._made[key])
        return self._made[key]

    def cost_of(self, value: ir.Value, perm: Perm) -> int:
        """Return the bytes that `source_of` would move; negative for a transpose it saves."""
        shape = shape_of(value)
        if value in self.views:
            saved = is_identity(compose(self.views[value][1], inverse(perm)))
            return -_bytes(value) if saved else 0
        if value in self.once or moves_only_ones(inverse(perm), shape.dims):
            return 0
        return _bytes(value)

    def view_of_operands(self, operands: Sequence[ir.Value], rank: int) -> Perm | None:
        """Return the perm of the largest operand that is a view of `rank` dims, if sinking pays."""
        views = [v for v in operands if v in self.views and shape_of(v).rank == rank]
        if not views:
            return None
        perm = self.views[max(views, key=_bytes)][1]
        cost = sum(self.cost_of(v, perm) for v in operands if shape_of(v).rank == rank)
        return perm if cost <= 0 else None

    def reorder(self, x: ir.Value, perm: Perm) -> ir.Value:
        """Build `transpose(x, perm)` to stay where it is, a reshape where that is the same."""
        dims = shape_of(x).dims
        if moves_only_ones(perm, dims):
            return reshaped(x, [dims[p] for p in perm])
        return transpose(x, perm)

    def note_once(self, operands: Sequence[ir.Value], results: Sequence[ir.Value]) -> None:
        """Record results that depend on weights and constants alone."""
        if all(v in self.once for v in operands):
            self.once.update(results)


def typical(dim: Dim) -> int:
    """Return a dim's value, or a typical one where that varies."""
    return dim.value if dim.is_static else dim.evaluate(dict.fromkeys(dim.symbols, _TYPICAL_DIM))


def _bytes(value: ir.Value) -> int:
    shape = shape_of(value)
    return typical(product(shape.dims)) * element_bytes(shape.element)

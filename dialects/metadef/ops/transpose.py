"""`metadef.transpose`: reorder dims."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

C1 = constraint("transpose-C1", "perm is a permutation of x's axes")


def infer(x: Shaped, perm: Sequence[int]) -> Shaped:
    """Return x with dim i taken from dim perm[i]."""
    if sorted(perm) != list(range(x.rank)):
        raise C1.broken(f"perm {list(perm)} of rank {x.rank}")
    return Shaped(tuple(x.dims[p] for p in perm), x.element)


class TransposeOp(MetadefOp, name="transpose", traits=[ir.ext.Pure]):
    """Dim i of the result is dim `perm[i]` of x."""

    x: Operand
    result: Result
    perm: Any

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), integers(self, "perm"))]


def transpose(x: ir.Value, perm: Sequence[int]) -> ir.Value:
    """Build x with its dims in the order of `perm`."""
    shape = shape_of(x)
    perm = [axis(p, shape.rank) for p in perm]
    return build(TransposeOp, [x], [infer(shape, perm)], perm=perm)

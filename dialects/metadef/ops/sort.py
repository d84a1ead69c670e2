"""`metadef.sort`: sorted values and where they were."""

from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, integer
from metadef.dialects.metadef.op import MetadefOp, create
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

C1 = constraint("sort-C1", "dim is an axis of x")


def infer(x: Shaped, dim: int) -> tuple[Shaped, Shaped]:
    """Return x's own shape, and the same of i64."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    return x, x.with_element(ir.IntegerType.get_signless(64))


class SortOp(MetadefOp, name="sort", traits=[ir.ext.Pure]):
    """x sorted along `dim`, and the index each value had in x; NaN counts as the greatest.

    Equal values keep their order with `stable`. The k greatest are sort, then slice.
    """

    x: Operand
    values: Result
    indices: Result
    dim: ir.IntegerAttr
    descending: Any
    stable: Any

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        boolean(self, "descending")
        boolean(self, "stable")
        return list(infer(shape_of(self.x), integer(self, "dim")))


def sort(
    x: ir.Value, dim: int, descending: bool = False, stable: bool = True
) -> tuple[ir.Value, ir.Value]:
    """Build the sort of x along `dim`; return values and indices."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    values, indices = infer(shape, dim)
    op = create(
        SortOp,
        [x],
        [values.type, indices.type],
        dim=dim,
        descending=descending,
        stable=stable,
    )
    return op.results[0], op.results[1]

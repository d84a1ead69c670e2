"""`metadef.broadcast`: stretch dims of 1, and add leading dims, as numpy does."""

from collections.abc import Sequence

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import ONE, Shaped, shape_of, shaped
from metadef.symbolic import DimLike, same

C1 = constraint("broadcast-C1", "each dim of x is 1 or the result's")


def infer(x: Shaped, dims: Sequence[DimLike]) -> Shaped:
    """Return x stretched to `dims`, which only the caller knows."""
    result = shaped(dims, x.element)
    offset = result.rank - x.rank
    if offset < 0 or any(
        a != ONE and same(a, b) is False for a, b in zip(x.dims, result.dims[offset:], strict=True)
    ):
        raise C1.broken(f"{x} to {result}")
    return result


class BroadcastOp(MetadefOp, name="broadcast", traits=[ir.ext.Pure]):
    """x with its dims of literal 1 repeated, and leading dims added, to the dims of the result."""

    x: Operand
    result: Result

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), shape_of(self.results[0]).dims)]


def broadcast(x: ir.Value, dims: Sequence[DimLike]) -> ir.Value:
    """Build x stretched to `dims`."""
    return build(BroadcastOp, [x], [infer(shape_of(x), dims)])

"""`metadef.scatter`: put elements along one dim, an index for each."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import choice, integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

REDUCES = ("none", "add", "mul", "max", "min")

C1 = constraint("scatter-C1", "dim is an axis of x")
C2 = constraint("scatter-C2", "indices are integers of x's rank")
C3 = constraint("scatter-C3", "updates have x's rank and element type and hold an element an index")
C4 = constraint("scatter-C4", "indices exceed x in no dim but `dim`")


def infer(x: Shaped, indices: Shaped, updates: Shaped, dim: int) -> Shaped:
    """Return x's own shape."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    C2.check(kind_of(indices.element) == "int" and indices.rank == x.rank, f"{indices} for {x}")
    C3.check(updates.element == x.element and updates.rank == x.rank, f"{updates} for {x}")
    for i, n in enumerate(indices.dims):
        spare, room = updates.dims[i] - n, x.dims[i] - n
        C3.check(not spare.is_static or spare.value >= 0, f"{updates} for indices {indices}")
        C4.check(i == dim or not room.is_static or room.value >= 0, f"{indices} for {x}")
    return x


class ScatterOp(MetadefOp, name="scatter", traits=[ir.ext.Pure]):
    """x, but `result[.., indices[.., i, ..], ..] = updates[.., i, ..]` at `dim`, as torch.scatter.

    `reduce` combines with what is there, in order of i; without it the last one of equal indices
    stays. A negative index counts from the end.
    """

    x: Operand
    indices: Operand
    updates: Operand
    result: Result
    dim: ir.IntegerAttr
    reduce: ir.StringAttr

    constraints = (C1, C2, C3, C4)

    def infer_results(self) -> list[Shaped]:
        choice(self, "reduce", REDUCES)
        shapes = shape_of(self.x), shape_of(self.indices), shape_of(self.updates)
        return [infer(*shapes, integer(self, "dim"))]


def scatter(
    x: ir.Value, indices: ir.Value, updates: ir.Value, dim: int, reduce: str = "none"
) -> ir.Value:
    """Build x with `updates` put at `indices` along `dim`."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    result = infer(shape, shape_of(indices), shape_of(updates), dim)
    return build(ScatterOp, [x, indices, updates], [result], dim=dim, reduce=reduce)

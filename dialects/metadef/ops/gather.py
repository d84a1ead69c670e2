"""`metadef.gather`: pick elements along one dim, an index for each."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

C1 = constraint("gather-C1", "dim is an axis of x")
C2 = constraint("gather-C2", "indices are integers of x's rank")
C3 = constraint("gather-C3", "indices exceed x in no dim but `dim`")


def infer(x: Shaped, indices: Shaped, dim: int) -> Shaped:
    """Return the dims of indices with x's element type."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    C2.check(kind_of(indices.element) == "int" and indices.rank == x.rank, f"{indices} for {x}")
    for i, (a, b) in enumerate(zip(x.dims, indices.dims, strict=True)):
        room = a - b
        C3.check(i == dim or not room.is_static or room.value >= 0, f"{indices} for {x}")
    return indices.with_element(x.element)


class GatherOp(MetadefOp, name="gather", traits=[ir.ext.Pure]):
    """`result[.., i, ..] = x[.., indices[.., i, ..], ..]` at `dim`, as torch.gather.

    A negative index counts from the end.
    """

    x: Operand
    indices: Operand
    result: Result
    dim: ir.IntegerAttr

    constraints = (C1, C2, C3)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), shape_of(self.indices), integer(self, "dim"))]


def gather(x: ir.Value, indices: ir.Value, dim: int) -> ir.Value:
    """Build the elements of x at `indices` along `dim`."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    return build(GatherOp, [x, indices], [infer(shape, shape_of(indices), dim)], dim=dim)

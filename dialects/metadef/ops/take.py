"""`metadef.take`: pick slices of one dim by index."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

C1 = constraint("take-C1", "dim is an axis of x")
C2 = constraint("take-C2", "indices are integers")


def infer(x: Shaped, indices: Shaped, dim: int) -> Shaped:
    """Return x with `dim` replaced by the dims of indices."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    C2.check(kind_of(indices.element) == "int", str(indices.element))
    return Shaped((*x.dims[:dim], *indices.dims, *x.dims[dim + 1 :]), x.element)


class TakeOp(MetadefOp, name="take", traits=[ir.ext.Pure]):
    """`result[a.., i.., b..] = x[a.., indices[i..], b..]` at `dim`: embedding, index_select.

    x [A.., N, B..], indices [I..] give [A.., I.., B..]; a negative index counts from the end.
    """

    x: Operand
    indices: Operand
    result: Result
    dim: ir.IntegerAttr

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), shape_of(self.indices), integer(self, "dim"))]


def take(x: ir.Value, indices: ir.Value, dim: int = 0) -> ir.Value:
    """Build the slices of x at `indices` of `dim`."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    return build(TakeOp, [x, indices], [infer(shape, shape_of(indices), dim)], dim=dim)

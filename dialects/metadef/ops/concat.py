"""`metadef.concat`: tensors one after another along one dim."""

from collections.abc import Sequence

from metadef import ir
from metadef.diagnostics import ShapeInferenceError
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, axis, merge_dims, shape_of

C1 = constraint("concat-C1", "dim is an axis of every operand")
C2 = constraint("concat-C2", "operands have one element type and rank, and one is there")
C3 = constraint("concat-C3", "other dims agree")


def infer(xs: Sequence[Shaped], dim: int) -> Shaped:
    """Return the operands' dims, those at `dim` added."""
    if not xs:
        raise C2.broken("no operand")
    dims = list(xs[0].dims)
    C1.check(0 <= dim < len(dims), f"dim {dim} of rank {len(dims)}")
    for x in xs[1:]:
        C2.check(x.rank == len(dims) and x.element == xs[0].element, f"{xs[0]} and {x}")
        for i, d in enumerate(x.dims):
            try:
                dims[i] = dims[i] + d if i == dim else merge_dims(dims[i], d)
            except ShapeInferenceError:
                raise C3.broken(f"{xs[0]} and {x}") from None
    return Shaped(tuple(dims), xs[0].element)


class ConcatOp(MetadefOp, name="concat", traits=[ir.ext.Pure]):
    """The operands one after another along `dim`: [.., N, ..], [.., M, ..] give [.., N + M, ..]."""

    xs: Sequence[Operand]
    result: Result
    dim: ir.IntegerAttr

    constraints = (C1, C2, C3)
    operand_groups = 16

    def infer_results(self) -> list[Shaped]:
        return [infer([shape_of(x) for x in self.operands], integer(self, "dim"))]


def concat(xs: Sequence[ir.Value], dim: int) -> ir.Value:
    """Build the operands joined along `dim`; many operands become a concat of concats."""
    most = ConcatOp.operand_groups
    if len(xs) > most and len({str(x.type) for x in xs}) > 1:
        return concat([concat(xs[i : i + most], dim) for i in range(0, len(xs), most)], dim)
    shapes = [shape_of(x) for x in xs]
    dim = axis(dim, shapes[0].rank) if shapes else dim
    return build(ConcatOp, list(xs), [infer(shapes, dim)], dim=dim)

"""`metadef.slice`: a strided range of one dim."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer, text
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of
from metadef.symbolic import Dim, DimLike

C1 = constraint("slice-C1", "dim is an axis of x")
C2 = constraint("slice-C2", "step is not 0")
C3 = constraint("slice-C3", "the range lies within x")


def infer(x: Shaped, dim: int, start: DimLike, size: DimLike, step: int) -> Shaped:
    """Return x with `size`, which only the caller knows, at `dim`."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    C2.check(step != 0, "0")
    first, count = Dim.of(start), Dim.of(size)
    last = first + (count - 1) * step
    empty = count.is_static and count.value == 0
    for index in () if empty else (first, last):
        room = x.dims[dim] - 1 - index
        if (index.is_static and index.value < 0) or (room.is_static and room.value < 0):
            raise C3.broken(f"index {index} of dim {dim} = {x.dims[dim]}")
    dims = list(x.dims)
    dims[dim] = count
    return Shaped(tuple(dims), x.element)


class SliceOp(MetadefOp, name="slice", traits=[ir.ext.Pure]):
    """`result[.., i, ..] = x[.., start + step * i, ..]` at `dim`; the result type says the size.

    `start` is a dim expression, the index of the first element read; a negative `step` walks back.
    """

    x: Operand
    result: Result
    dim: ir.IntegerAttr
    start: ir.StringAttr
    step: ir.IntegerAttr

    constraints = (C1, C2, C3)

    def infer_results(self) -> list[Shaped]:
        x, result, dim = shape_of(self.x), shape_of(self.results[0]), integer(self, "dim")
        C1.check(0 <= dim < min(x.rank, result.rank), f"dim {dim} of rank {x.rank}")
        return [infer(x, dim, text(self, "start"), result.dims[dim], integer(self, "step"))]


def slice(x: ir.Value, dim: int, start: DimLike, size: DimLike, step: int = 1) -> ir.Value:
    """Build `size` elements of `dim` from `start` on, `step` apart."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    result = infer(shape, dim, start, size, step)
    return build(SliceOp, [x], [result], dim=dim, start=str(Dim.of(start)), step=step)

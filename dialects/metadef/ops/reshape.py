"""`metadef.reshape`: the same elements in row-major order under other dims."""

from collections.abc import Sequence

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of, shaped
from metadef.symbolic import DimLike, product, same

C1 = constraint("reshape-C1", "x and result have equally many elements")


def infer(x: Shaped, dims: Sequence[DimLike]) -> Shaped:
    """Return x with `dims`, which only the caller knows."""
    result = shaped(dims, x.element)
    if same(product(x.dims), product(result.dims)) is False:
        raise C1.broken(f"{x} to {result}")
    return result


class ReshapeOp(MetadefOp, name="reshape", traits=[ir.ext.Pure]):
    """x's elements in row-major order; the result type says the new dims."""

    x: Operand
    result: Result

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), shape_of(self.results[0]).dims)]


def reshape(x: ir.Value, dims: Sequence[DimLike]) -> ir.Value:
    """Build x with other dims."""
    return build(ReshapeOp, [x], [infer(shape_of(x), dims)])

"""`metadef.softmax`: normalised exponentials along one dim."""

from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

C1 = constraint("softmax-C1", "dim is an axis of x")
C2 = constraint("softmax-C2", "x is of floats")


def infer(x: Shaped, dim: int) -> Shaped:
    """Return x's own shape."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    C2.check(kind_of(x.element) == "float", str(x.element))
    return x


class SoftmaxOp(MetadefOp, name="softmax", traits=[ir.ext.Pure]):
    """`exp(x - max(x)) / sum(exp(x - max(x)))` along `dim`, or its logarithm with `log`."""

    x: Operand
    result: Result
    dim: ir.IntegerAttr
    log: Any

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        boolean(self, "log")
        return [infer(shape_of(self.x), integer(self, "dim"))]


def softmax(x: ir.Value, dim: int, log: bool = False) -> ir.Value:
    """Build the softmax of x along `dim`."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    return build(SoftmaxOp, [x], [infer(shape, dim)], dim=dim, log=log)

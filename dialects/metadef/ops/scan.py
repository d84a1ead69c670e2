"""`metadef.scan`: running reduction along one dim."""

from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, choice, integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of

FNS = ("sum", "prod", "max", "min", "logsumexp")

C1 = constraint("scan-C1", "dim is an axis of x")
C2 = constraint("scan-C2", "fn is defined for the element type")


def infer(fn: str, x: Shaped, dim: int) -> Shaped:
    """Return x's own shape."""
    C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
    kind = kind_of(x.element)
    C2.check(kind == "float" or (kind == "int" and fn != "logsumexp"), f"'{fn}' on {x.element}")
    return x


class ScanOp(MetadefOp, name="scan", traits=[ir.ext.Pure]):
    """`result[i] = fn(x[0], .., x[i])` along `dim`, or `fn(x[i], .., x[N-1])` with `reverse`."""

    x: Operand
    result: Result
    fn: ir.StringAttr
    dim: ir.IntegerAttr
    reverse: Any

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        boolean(self, "reverse")
        return [infer(choice(self, "fn", FNS), shape_of(self.x), integer(self, "dim"))]


def scan(fn: str, x: ir.Value, dim: int, reverse: bool = False) -> ir.Value:
    """Build the running `fn` of x along `dim`."""
    shape = shape_of(x)
    dim = axis(dim, shape.rank)
    return build(ScanOp, [x], [infer(fn, shape, dim)], fn=fn, dim=dim, reverse=reverse)

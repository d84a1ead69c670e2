"""`metadef.dim`: the value of a dim expression as a tensor."""

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.dialect import Result, constraint
from metadef.dialects.metadef.attributes import text
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shaped
from metadef.symbolic import Dim, DimLike

C1 = constraint("dim-C1", "expr is a dim expression")


def infer() -> Shaped:
    """Return the rank-0 i64 tensor."""
    return shaped([], ir.IntegerType.get_signless(64))


class DimOp(MetadefOp, name="dim", traits=[ir.ext.Pure]):
    """The run-time value of `expr`, an expression over the module's symbols, as tensor<i64>."""

    result: Result
    expr: ir.StringAttr

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        expr = text(self, "expr")
        try:
            Dim.of(expr)
        except MetadefError:
            raise C1.broken(f"'{expr}'") from None
        return [infer()]


def dim(expr: DimLike) -> ir.Value:
    """Build the value of `expr`."""
    return build(DimOp, [], [infer()], expr=str(Dim.of(expr)))

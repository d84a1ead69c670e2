"""`metadef.yield`: the end of a kernel's or opaque op's region."""

from collections.abc import Sequence

from metadef import ir
from metadef.dialect import Operand
from metadef.dialects.metadef.op import MetadefOp, create
from metadef.dialects.metadef.shapes import Shaped


class YieldOp(MetadefOp, name="yield", traits=[ir.ext.Pure, ir.IsTerminatorTrait]):
    """Give the operands as the results of the op around; the op around checks their types."""

    xs: Sequence[Operand]

    operand_groups = 32

    def infer_results(self) -> list[Shaped]:
        return []


def yield_(xs: Sequence[ir.Value]) -> None:
    """Build the terminator that gives `xs`."""
    create(YieldOp, list(xs), [])

"""`metadef.opaque`: torch-dialect ops that metadef does not model."""

from collections.abc import Sequence

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.op import MetadefOp, create
from metadef.dialects.metadef.regions import yielded_types
from metadef.dialects.metadef.shapes import Shaped, shape_of

C1 = constraint("opaque-C1", "the region is one block that ends in metadef.yield")
C2 = constraint("opaque-C2", "there is one block argument an operand")
C3 = constraint("opaque-C3", "there is one yielded value a result")


class OpaqueOp(MetadefOp, name="opaque", traits=[ir.ext.Pure, ir.IsIsolatedFromAboveTrait]):
    """What the torch ops of the region compute.

    Block arguments and yielded values have torch types (`!torch.vtensor`) for the tensors outside;
    torch-mlir's conversions to linalg lower the region.
    """

    xs: Sequence[Operand]
    ys: Sequence[Result]
    body: ir.Region

    constraints = (C1, C2, C3)
    operand_groups = 64
    result_groups = 32

    def infer_results(self) -> list[Shaped]:
        yielded = yielded_types(self, C1)
        arguments = self.regions[0].blocks[0].arguments
        C2.check(
            len(arguments) == len(self.operands),
            f"{len(arguments)} arguments, {len(self.operands)} operands",
        )
        C3.check(
            len(yielded) == len(self.results), f"{len(yielded)} for {len(self.results)} results"
        )
        return [shape_of(r) for r in self.results]


def opaque(
    xs: Sequence[ir.Value], results: Sequence[ir.Type], arguments: Sequence[ir.Type]
) -> OpaqueOp:
    """Build an opaque op with an empty block whose arguments have the torch types `arguments`.

    The caller fills `opaque.regions[0].blocks[0]` and ends it with `yield_`.
    """
    op = create(OpaqueOp, list(xs), list(results), regions=1)
    ir.Block.create_at_start(op.regions[0], list(arguments), [op.location] * len(arguments))
    made: OpaqueOp = op.opview
    return made

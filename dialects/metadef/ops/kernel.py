"""`metadef.kernel`: a fusion group, ops that become one native function."""

from collections.abc import Sequence

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.op import MetadefOp, create
from metadef.dialects.metadef.regions import yielded_types
from metadef.dialects.metadef.shapes import Shaped, disagreement, shape_of, shape_of_type

C1 = constraint("kernel-C1", "the region is one block that ends in metadef.yield")
C2 = constraint("kernel-C2", "block arguments have the types of the operands")
C3 = constraint("kernel-C3", "yielded values have the types of the results")


class KernelOp(MetadefOp, name="kernel", traits=[ir.ext.Pure, ir.IsIsolatedFromAboveTrait]):
    """The values that the region yields, its block arguments being the operands."""

    xs: Sequence[Operand]
    ys: Sequence[Result]
    body: ir.Region

    constraints = (C1, C2, C3)
    operand_groups = 32
    result_groups = 32

    def infer_results(self) -> list[Shaped]:
        yielded = yielded_types(self, C1)
        arguments = self.regions[0].blocks[0].arguments
        got = [x.type for x in self.operands]
        C2.check(len(arguments) == len(got), f"{len(arguments)} arguments, {len(got)} operands")
        for i, (argument, type_) in enumerate(zip(arguments, got, strict=True)):
            C2.check(argument.type == type_, f"argument {i} of {argument.type} for {type_}")
        inferred = [shape_of_type(t) for t in yielded]
        C3.check(
            len(inferred) == len(self.results), f"{len(inferred)} for {len(self.results)} results"
        )
        for result, shape in zip(self.results, inferred, strict=True):
            difference = disagreement(shape_of(result), shape)
            if difference is not None:
                raise C3.broken(difference)
        return inferred


def kernel(xs: Sequence[ir.Value], results: Sequence[ir.Type]) -> KernelOp:
    """Build a kernel with an empty block, whose arguments stand for `xs`.

    The caller fills `kernel.regions[0].blocks[0]` and ends it with `yield_`.
    """
    op = create(KernelOp, list(xs), list(results), regions=1)
    types = [x.type for x in xs]
    ir.Block.create_at_start(op.regions[0], types, [op.location] * len(types))
    made: KernelOp = op.opview
    return made

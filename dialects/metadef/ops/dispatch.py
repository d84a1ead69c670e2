"""`metadef.dispatch`: run an outlined kernel."""

from collections.abc import Mapping, Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import symbol
from metadef.dialects.metadef.op import MetadefOp, create
from metadef.dialects.metadef.shapes import Shaped, shape_of

C1 = constraint("dispatch-C1", "kernel refers to a function by name")
C2 = constraint("dispatch-C2", "sizes, if given, has an integer of at least 0 for each symbol")


class DispatchOp(MetadefOp, name="dispatch", traits=[ir.ext.Pure]):
    """The results of the function `kernel` on the operands.

    `sizes`, if there, has the values of the kernel's own symbols: `{n0 = 64 : i64}`. A symbol that
    is not in there is one of the program.

    That the function exists and has these types is for the pass that outlines to keep: symbols are
    looked up per module, not per op.
    """

    xs: Sequence[Operand]
    ys: Sequence[Result]
    kernel: ir.FlatSymbolRefAttr

    constraints = (C1, C2)
    operand_groups = 32
    result_groups = 32

    def infer_results(self) -> list[Shaped]:
        C1.check(bool(symbol(self, "kernel")), "''")
        if "sizes" in self.attributes:
            sizes = self.attributes["sizes"]
            C2.check(_are_sizes(sizes), str(sizes))
        return [shape_of(r) for r in self.results]


def _are_sizes(attribute: ir.Attribute) -> bool:
    return isinstance(attribute, ir.DictAttr) and all(
        isinstance(size.attr, ir.IntegerAttr) and size.attr.value >= 0 for size in attribute
    )


def dispatch(
    kernel: str,
    xs: Sequence[ir.Value],
    results: Sequence[ir.Type],
    sizes: Mapping[str, int] | None = None,
) -> tuple[ir.Value, ...]:
    """Build a run of the function `kernel`, whose own symbols are `sizes`; return its results."""
    attributes: dict[str, Any] = {"kernel": ir.FlatSymbolRefAttr.get(kernel)}
    if sizes:
        i64 = ir.IntegerType.get_signless(64)
        values = {name: ir.IntegerAttr.get(i64, size) for name, size in sizes.items()}
        attributes["sizes"] = ir.DictAttr.get(values)
    op = create(DispatchOp, list(xs), list(results), **attributes)
    return tuple(op.results)

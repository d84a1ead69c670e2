"""`metadef.pad`: add elements at, or cut them off, both ends of each dim."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import choice, integers, scalar, scalar_attribute
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of

MODES = ("constant", "reflect", "replicate", "circular")

C1 = constraint("pad-C1", "low and high have one entry a dim")
C2 = constraint("pad-C2", "no dim becomes negative")
C3 = constraint("pad-C3", "value is a number of the element type")
C4 = constraint("pad-C4", "reflect adds less than the dim at either end, circular at most the dim")


def infer(x: Shaped, low: Sequence[int], high: Sequence[int], mode: str) -> Shaped:
    """Return x with low[i] + high[i] added to dim i."""
    if len(low) != x.rank or len(high) != x.rank:
        raise C1.broken(f"low {list(low)} and high {list(high)} for rank {x.rank}")
    dims = tuple(d + (a + b) for d, a, b in zip(x.dims, low, high, strict=True))
    for i, d in enumerate(dims):
        C2.check(not d.is_static or d.value >= 0, f"dim {i} = {d}")
    if mode in ("reflect", "circular"):
        for i, d in enumerate(x.dims):
            most = max(low[i], high[i])
            limit = d.value - (mode == "reflect") if d.is_static else most
            C4.check(most <= limit or most <= 0, f"{most} for dim {i} = {d}")
    return Shaped(dims, x.element)


class PadOp(MetadefOp, name="pad", traits=[ir.ext.Pure]):
    """Add `low[i]` elements before and `high[i]` after dim i; negative ones cut off.

    constant: they are `value`; reflect, replicate, circular: as in torch.nn.functional.pad.
    """

    x: Operand
    result: Result
    low: Any
    high: Any
    mode: ir.StringAttr
    value: Any

    constraints = (C1, C2, C3, C4)

    def infer_results(self) -> list[Shaped]:
        x = shape_of(self.x)
        scalar(self, "value")
        type_ = self.attributes["value"].type
        C3.check(type_ == x.element, f"{type_} for {x.element}")
        mode = choice(self, "mode", MODES)
        return [infer(x, integers(self, "low"), integers(self, "high"), mode)]


def pad(
    x: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
    mode: str = "constant",
    value: int | float | bool = 0,
) -> ir.Value:
    """Build x padded by `low` and `high`."""
    shape = shape_of(x)
    return build(
        PadOp,
        [x],
        [infer(shape, low, high, mode)],
        low=list(low),
        high=list(high),
        mode=mode,
        value=scalar_attribute(value, shape.element),
    )

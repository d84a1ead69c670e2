"""`metadef.fill`: a tensor of one value, of any shape."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Result, constraint
from metadef.dialects.metadef.attributes import scalar, scalar_attribute
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of, shaped
from metadef.symbolic import DimLike

C1 = constraint("fill-C1", "value is a number of the element type")


def infer(dims: Sequence[DimLike], element: ir.Type) -> Shaped:
    """Return the given shape: it does not follow from anything."""
    return shaped(dims, element)


class FillOp(MetadefOp, name="fill", traits=[ir.ext.Pure]):
    """`result[i] = value`; the result's dims may be symbolic."""

    result: Result
    value: Any

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        result = shape_of(self.results[0])
        scalar(self, "value")
        type_ = self.attributes["value"].type
        C1.check(type_ == result.element, f"{type_} for {result.element}")
        return [result]


def fill(dims: Sequence[DimLike], value: int | float | bool, element: ir.Type) -> ir.Value:
    """Build a tensor of `dims` whose elements are all `value`."""
    return build(FillOp, [], [infer(dims, element)], value=scalar_attribute(value, element))

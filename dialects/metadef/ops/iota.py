"""`metadef.iota`: an arithmetic progression along one dim."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Result, constraint
from metadef.dialects.metadef.attributes import integer, scalar, scalar_attribute
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, axis, shape_of, shaped
from metadef.symbolic import DimLike

C1 = constraint("iota-C1", "dim is an axis of the result")
C2 = constraint("iota-C2", "start and step are numbers of the element type")


def infer(result: Shaped, dim: int) -> Shaped:
    """Return the given shape: it does not follow from anything."""
    C1.check(0 <= dim < result.rank, f"dim {dim} of rank {result.rank}")
    return result


class IotaOp(MetadefOp, name="iota", traits=[ir.ext.Pure]):
    """`result[.., i, ..] = start + step * i`, i the index along `dim`."""

    result: Result
    dim: ir.IntegerAttr
    start: Any
    step: Any

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        result = shape_of(self.results[0])
        for name in ("start", "step"):
            scalar(self, name)
            type_ = self.attributes[name].type
            C2.check(type_ == result.element, f"{name} of {type_} for {result.element}")
        return [infer(result, integer(self, "dim"))]


def iota(
    dims: Sequence[DimLike], dim: int, start: int | float, step: int | float, element: ir.Type
) -> ir.Value:
    """Build a tensor of `dims` that counts from `start` by `step` along `dim`."""
    dim = axis(dim, len(dims))
    return build(
        IotaOp,
        [],
        [infer(shaped(dims, element), dim)],
        dim=dim,
        start=scalar_attribute(start, element),
        step=scalar_attribute(step, element),
    )

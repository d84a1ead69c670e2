"""`metadef.constant`: a small literal tensor."""

from typing import Any

import numpy as np

from metadef import ir
from metadef.dialect import Result, constraint
from metadef.dialects.metadef.literals import dense_elements
from metadef.dialects.metadef.op import MetadefOp
from metadef.dialects.metadef.shapes import Shaped, shape_of_type

C1 = constraint("constant-C1", "value is a dense elements attribute")
C2 = constraint("constant-C2", "the literal is at most 4096 bytes or a splat")
LIMIT = 4096


def infer(value: ir.Attribute) -> Shaped:
    """Return the type of the literal."""
    if not isinstance(value, ir.DenseElementsAttr):
        raise C1.broken(str(value))
    result = shape_of_type(value.type)
    if not value.is_splat:
        width = getattr(result.element, "width", 8)
        size = len(value) * max(width // 8, 1)
        C2.check(size <= LIMIT, f"{size} bytes")
    return result


class ConstantOp(MetadefOp, name="constant", traits=[ir.ext.Pure]):
    """The tensor `value`; larger tensors are weights, a splat may have any static shape."""

    result: Result
    value: Any

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        if "value" not in self.attributes:
            raise C1.broken("none")
        return [infer(self.attributes["value"])]


def constant(
    value: "np.ndarray[Any, Any] | int | float | bool", element: ir.Type | None = None
) -> ir.Value:
    """Build a literal from a numpy array or scalar; `element` is the element type.

    Without it the array's own dtype decides (a Python float is f32, an int i64, a bool i1).
    """
    literal = dense_elements(value, element)
    created = ir.Operation.create(
        ConstantOp.OPERATION_NAME, results=[infer(literal).type], attributes={"value": literal}
    )
    result: ir.Value = created.results[0]
    return result

"""`metadef.quantize`: floats to a quantised element type."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, shape_of

C1 = constraint("quantize-C1", "x is of floats")
C2 = constraint("quantize-C2", "the result's element type is quantised, of x's float type")


def infer(x: Shaped, element: ir.Type) -> Shaped:
    """Return x with the quantised element type, which only the caller knows."""
    C1.check(kind_of(x.element) == "float", str(x.element))
    quantised = isinstance(element, ir.quant.QuantizedType)
    C2.check(quantised and element.expressed_type == x.element, str(element))
    return x.with_element(element)


class QuantizeOp(MetadefOp, name="quantize", traits=[ir.ext.Pure]):
    """`round_half_to_even(x / scale) + zero_point`, clamped, by what the element type says."""

    x: Operand
    result: Result

    constraints = (C1, C2)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), shape_of(self.results[0]).element)]


def quantize(x: ir.Value, element: ir.Type) -> ir.Value:
    """Build x quantised to `element`, a `!quant.uniform` type."""
    return build(QuantizeOp, [x], [infer(shape_of(x), element)])

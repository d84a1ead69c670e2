"""`metadef.dequantize`: a quantised element type back to floats."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of

C1 = constraint("dequantize-C1", "x has a quantised element type")


def infer(x: Shaped) -> Shaped:
    """Return x with the float type that its element type expresses."""
    if not isinstance(x.element, ir.quant.QuantizedType):
        raise C1.broken(str(x.element))
    return x.with_element(x.element.expressed_type)


class DequantizeOp(MetadefOp, name="dequantize", traits=[ir.ext.Pure]):
    """`(x - zero_point) * scale`; the element type says scale and zero point."""

    x: Operand
    result: Result

    constraints = (C1,)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x))]


def dequantize(x: ir.Value) -> ir.Value:
    """Build the floats that x stands for."""
    return build(DequantizeOp, [x], [infer(shape_of(x))])

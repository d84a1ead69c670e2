"""`metadef.pointwise`: one scalar function applied to every element of broadcast operands."""

from collections.abc import Sequence

from metadef import ir
from metadef.diagnostics import ShapeInferenceError, near_names
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import text
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import POINTWISE_FNS, kind_of
from metadef.dialects.metadef.shapes import Shaped, broadcast_dims, shape_of

C1 = constraint("pointwise-C1", "fn is a known function")
C2 = constraint("pointwise-C2", "the number of operands is fn's arity")
C3 = constraint("pointwise-C3", "operands have one element type, select's condition is i1")
C4 = constraint("pointwise-C4", "fn is defined for the element type")
C5 = constraint("pointwise-C5", "operands broadcast as numpy does")


def infer(fn: str, xs: Sequence[Shaped], element: ir.Type | None = None) -> Shaped:
    """Return the broadcast dims with fn's result type; `element` is the target of a cast."""
    known = POINTWISE_FNS.get(fn)
    if known is None:
        raise C1.broken(f"'{fn}'{near_names(fn, POINTWISE_FNS)}")
    if len(xs) != known.arity:
        raise C2.broken(f"{len(xs)} operands for '{fn}', which takes {known.arity}")
    values = xs[1:] if fn == "select" else xs
    source = values[0].element
    if fn == "select" and kind_of(xs[0].element) != "bool":
        raise C3.broken(f"condition of {xs[0].element}")
    for x in values[1:]:
        if x.element != source:
            raise C3.broken(f"{source} and {x.element}")
    if kind_of(source) not in known.kinds:
        raise C4.broken(f"'{fn}' on {source}, expected {' or '.join(known.kinds)}")
    if known.result == "bool":
        source = ir.IntegerType.get_signless(1)
    elif known.result == "cast":
        C4.check(element is not None and kind_of(element) is not None, f"a cast to {element}")
        assert element is not None
        source = element
    if len(xs) == 1:
        return Shaped(xs[0].dims, source)
    try:
        return Shaped(broadcast_dims(*[x.dims for x in xs]), source)
    except ShapeInferenceError:
        raise C5.broken(" and ".join(map(str, xs))) from None


class PointwiseOp(MetadefOp, name="pointwise", traits=[ir.ext.Pure]):
    """`result[i] = fn(x0[i], x1[i], ...)`; operands broadcast as numpy does, literal 1 dims only.

    The functions are those of `pointwise_fns.py`; what each means is torch's.
    """

    xs: Sequence[Operand]
    result: Result
    fn: ir.StringAttr

    constraints = (C1, C2, C3, C4, C5)
    operand_groups = 3

    def infer_results(self) -> list[Shaped]:
        fn = text(self, "fn")
        element = shape_of(self.results[0]).element if fn == "cast" else None
        return [infer(fn, [shape_of(x) for x in self.operands], element)]


def pointwise(fn: str, *xs: ir.Value, element: ir.Type | None = None) -> ir.Value:
    """Build `fn(xs...)`; `element` is the element type a `cast` gives."""
    return build(PointwiseOp, list(xs), [infer(fn, [shape_of(x) for x in xs], element)], fn=fn)

"""`metadef.reduce`: fold some dims of a tensor by one function."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, choice, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import ONE, Shaped, axis, shape_of

FNS = ("sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin")

C1 = constraint("reduce-C1", "dims are distinct axes of x")
C2 = constraint("reduce-C2", "fn is defined for the element type")
C3 = constraint("reduce-C3", "argmax and argmin reduce one dim")


def infer(fn: str, x: Shaped, dims: Sequence[int], keepdim: bool) -> Shaped:
    """Return x without `dims` (1 with `keepdim`); any, all give i1, argmax, argmin i64."""
    reduced = set(dims)
    if len(reduced) != len(dims) or not all(0 <= d < x.rank for d in dims):
        raise C1.broken(f"dims {list(dims)} of rank {x.rank}")
    kind = kind_of(x.element)
    element = x.element
    if fn in ("any", "all"):
        C2.check(kind == "bool", f"'{fn}' on {element}, expected i1")
    elif fn in ("argmax", "argmin"):
        C3.check(len(dims) == 1, f"dims {list(dims)}")
        element = ir.IntegerType.get_signless(64)
    elif fn == "mean":
        C2.check(kind == "float", f"'mean' on {element}, expected float")
    elif fn in ("sum", "prod"):
        C2.check(kind in ("float", "int"), f"'{fn}' on {element}, expected float or int")
    if keepdim:
        return Shaped(tuple(ONE if i in reduced else d for i, d in enumerate(x.dims)), element)
    return Shaped(tuple(d for i, d in enumerate(x.dims) if i not in reduced), element)


class ReduceOp(MetadefOp, name="reduce", traits=[ir.ext.Pure]):
    """Fold `dims` of x by `fn`: [.., N, ..] to [.., ..], or [.., 1, ..] with `keepdim`.

    `max` and `min` give NaN if an element is; `argmax` and `argmin` give the first of equals, and
    the first NaN if there is one.
    """

    x: Operand
    result: Result
    fn: ir.StringAttr
    dims: Any
    keepdim: Any

    constraints = (C1, C2, C3)

    def infer_results(self) -> list[Shaped]:
        fn = choice(self, "fn", FNS)
        return [infer(fn, shape_of(self.x), integers(self, "dims"), boolean(self, "keepdim"))]


def reduce(fn: str, x: ir.Value, dims: Sequence[int], keepdim: bool = False) -> ir.Value:
    """Build the reduction of x by `fn` over `dims`."""
    shape = shape_of(x)
    dims = sorted(axis(d, shape.rank) for d in dims)
    return build(
        ReduceOp, [x], [infer(fn, shape, dims, keepdim)], fn=fn, dims=dims, keepdim=keepdim
    )

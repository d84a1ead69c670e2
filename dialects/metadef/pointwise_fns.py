"""The table of `metadef.pointwise` functions: arity, accepted element kinds, and the result rule.

A function's semantics (NaN, integers, rounding) are those of the torch op of the same meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from metadef import ir

Kind = Literal["float", "int", "bool"]
ResultRule = Literal["same", "bool", "cast"]


@dataclass(frozen=True)
class PointwiseFn:
    """One function: `kinds` are the element kinds of its operands (select: of `a` and `b`)."""

    arity: int
    kinds: tuple[Kind, ...]
    result: ResultRule = "same"


_F: tuple[Kind, ...] = ("float",)
_I: tuple[Kind, ...] = ("int",)
_FI: tuple[Kind, ...] = ("float", "int")
_IB: tuple[Kind, ...] = ("int", "bool")
_FIB: tuple[Kind, ...] = ("float", "int", "bool")


def _table() -> dict[str, PointwiseFn]:
    fns: dict[str, PointwiseFn] = {}

    def add(names: str, arity: int, kinds: tuple[Kind, ...], result: ResultRule = "same") -> None:
        for name in names.split():
            fns[name] = PointwiseFn(arity, kinds, result)

    add("exp exp2 expm1 log log2 log10 log1p sqrt rsqrt reciprocal", 1, _F)
    add("sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh", 1, _F)
    add("erf erfc erfinv lgamma digamma", 1, _F)
    add("sigmoid silu gelu gelu_tanh hardswish hardsigmoid mish softplus", 1, _F)
    add("neg abs sign relu floor ceil round trunc", 1, _FI)
    add("not", 1, ("bool",))
    add("bitwise_not", 1, _IB)
    add("isnan isinf isfinite", 1, _F, "bool")
    add("identity", 1, _FIB)
    add("cast", 1, _FIB, "cast")
    add("add sub mul floordiv truncdiv fmod remainder pow", 2, _FI)
    add("div atan2 copysign hypot nextafter", 2, _F)
    add("maximum minimum", 2, _FIB)
    add("fmax fmin", 2, _FI)
    add("eq ne lt le gt ge", 2, _FIB, "bool")
    add("and or xor", 2, _IB)
    add("shl shr", 2, _I)
    add("select", 3, _FIB)
    add("fma clamp", 3, _FI)
    return fns


POINTWISE_FNS: dict[str, PointwiseFn] = _table()


def kind_of(element: ir.Type) -> Kind | None:
    """Return the kind of an element type, or None for what pointwise functions do not know."""
    if isinstance(element, ir.IntegerType):
        return "bool" if element.width == 1 else "int"
    return "float" if isinstance(element, ir.FloatType) else None

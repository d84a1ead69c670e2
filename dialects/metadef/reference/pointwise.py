"""Reference of `pointwise`: each function as numpy says it, with torch's meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from metadef import ir
from metadef.dialects.metadef.literals import numpy_dtype, round_to_bfloat16

Array = np.ndarray[Any, Any]


def _special(name: str) -> Callable[[Array], Array]:
    """Return a function that numpy lacks, from torch, in double precision."""

    def call(x: Array) -> Array:
        import torch

        result: Array = getattr(torch.special, name)(torch.from_numpy(np.array(x))).numpy()
        return result

    return call


_erf, _digamma = _special("erf"), _special("digamma")


def _sigmoid(x: Array) -> Array:
    return np.exp(-np.logaddexp(0, -x))


def _gelu_tanh(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _truncdiv(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.trunc(a / b)
    quotient = a // b
    return quotient + ((quotient < 0) & (a % b != 0)).astype(a.dtype)


def _pow(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.power(a, b)
    power = np.power(a, np.maximum(b, 0))
    odd = np.where(b % 2 == 0, 1, a)
    inverse = np.where(a == 1, 1, np.where(a == -1, odd, 0)).astype(a.dtype)
    return np.where(b < 0, inverse, power).astype(a.dtype)


def _sign(x: Array) -> Array:
    return (x > 0).astype(x.dtype) - (x < 0).astype(x.dtype)


def _keep_integers(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: function(x) if x.dtype.kind == "f" else x


_FNS: dict[str, Callable[..., Array]] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": _sign,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _erf,
    "erfc": _special("erfc"),
    "erfinv": _special("erfinv"),
    "lgamma": _special("gammaln"),
    "digamma": _digamma,
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x * _sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / np.sqrt(2.0))),
    "gelu_tanh": _gelu_tanh,
    "hardswish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hardsigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "mish": lambda x: x * np.tanh(np.logaddexp(0, x)),
    "softplus": lambda x: np.logaddexp(0, x),
    "floor": _keep_integers(np.floor),
    "ceil": _keep_integers(np.ceil),
    "round": _keep_integers(np.rint),
    "trunc": _keep_integers(np.trunc),
    "not": np.logical_not,
    "bitwise_not": np.invert,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "identity": lambda x: x,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "floordiv": np.floor_divide,
    "truncdiv": _truncdiv,
    "fmod": np.fmod,
    "remainder": np.remainder,
    "pow": _pow,
    "atan2": np.arctan2,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "fmax": np.fmax,
    "fmin": np.fmin,
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "copysign": np.copysign,
    "hypot": np.hypot,
    "select": np.where,
    "fma": lambda a, b, c: a * b + c,
    "clamp": lambda x, lo, hi: np.minimum(np.maximum(x, lo), hi),
}


def _nextafter(a: Array, b: Array, element: ir.Type) -> Array:
    """Return the neighbours in the element type, whose spacing is what the function is about."""
    if str(element) != "bf16":
        dtype = numpy_dtype(element)
        return np.nextafter(a.astype(dtype), b.astype(dtype))
    bits = a.astype(np.float32).view(np.int32) >> 16
    step = np.where((b > a) == (a > 0), 1, -1)
    moved = ((bits + step).astype(np.int32) << 16).view(np.float32)
    smallest = np.copysign(np.int32(1 << 16).view(np.float32), b)
    moved = np.where(a == 0, smallest, moved)
    return np.where(a == b, b, np.where(np.isnan(a) | np.isnan(b), np.nan, moved))


def cast(x: Array, element: ir.Type) -> Array:
    """Return x in another element type as torch converts on a CPU.

    Floats truncate toward zero; small integers wrap, through i32 (i64 for uint8).
    """
    name = str(element)
    if name == "i1":
        return x != 0
    if name == "bf16":
        return round_to_bfloat16(x)
    dtype = numpy_dtype(element)
    if x.dtype.kind == "f" and dtype.kind in "iu" and dtype.itemsize < 4:
        x = x.astype(np.int64 if dtype.kind == "u" else np.int32)
    return x.astype(dtype)


def _pointwise(op: Any, operands: list[Array], symbols: Mapping[str, int]) -> Array:
    fn = op.attributes["fn"].value
    if fn == "cast":
        return cast(operands[0], ir.RankedTensorType(op.results[0].type).element_type)
    if fn == "nextafter":
        element = ir.RankedTensorType(op.operands[0].type).element_type
        return _nextafter(operands[0], operands[1], element)
    return _FNS[fn](*operands)


FUNCTIONS = {"pointwise": _pointwise}

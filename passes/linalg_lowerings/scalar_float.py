"""Float pointwise fns in `arith` and `math`; `expand-math` turns `math` into polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from metadef import ir

from . import special
from .scalar import Scalars, compare, select

_A, _M = ir.arith, ir.math


def emit(s: Scalars, fn: str, args: Sequence[ir.Value]) -> ir.Value:
    """Emit `fn` on f32 or f64 scalars."""
    if fn in _MATH:
        return ir.Operation.create(
            f"math.{_MATH[fn]}", results=[args[0].type], operands=list(args)
        ).result
    return _TABLE[fn](s, *args)


#: fns that are one op of the math dialect
_MATH = {
    name: name
    for name in "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh"
    " cosh tanh asinh acosh atanh erf erfc floor ceil trunc atan2 fma".split()
} | {"abs": "absf", "round": "roundeven", "pow": "powf"}


def _exp(x: ir.Value) -> ir.Value:
    return _M.exp(x)


def _sign(s: Scalars, x: ir.Value) -> ir.Value:
    zero = s.like(x, 0.0)
    signed = special.copysign(s, s.like(x, 1.0), x)
    return select(compare("ne", x, zero), select(_isnan(s, x), zero, signed), zero)


def _isnan(s: Scalars, x: ir.Value) -> ir.Value:
    return compare("ne", x, x)


def _isinf(s: Scalars, x: ir.Value) -> ir.Value:
    return compare("eq", _M.absf(x), s.like(x, math.inf))


def _isfinite(s: Scalars, x: ir.Value) -> ir.Value:
    return compare("lt", _M.absf(x), s.like(x, math.inf))


def _one_plus_exp_minus(s: Scalars, x: ir.Value) -> ir.Value:
    return _A.addf(s.like(x, 1.0), _exp(_A.negf(x)))


def _sigmoid(s: Scalars, x: ir.Value) -> ir.Value:
    return _A.divf(s.like(x, 1.0), _one_plus_exp_minus(s, x))


def _silu(s: Scalars, x: ir.Value) -> ir.Value:
    return _A.divf(x, _one_plus_exp_minus(s, x))


def _gelu(s: Scalars, x: ir.Value) -> ir.Value:
    half = _A.mulf(x, s.like(x, 0.5))
    return _M.fma(half, _M.erf(_A.mulf(x, s.like(x, math.sqrt(0.5)))), half)


def _gelu_tanh(s: Scalars, x: ir.Value) -> ir.Value:
    """0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016)."""
    scale = math.sqrt(2 / math.pi)
    factor = _M.fma(_A.mulf(x, x), s.like(x, 0.044715 * scale), s.like(x, scale))
    half = _A.mulf(x, s.like(x, 0.5))
    return _M.fma(half, _M.tanh(_A.mulf(x, factor)), half)


def _clamp(s: Scalars, x: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    return _A.minimumf(_A.maximumf(x, low), high)


def _hardsigmoid(s: Scalars, x: ir.Value) -> ir.Value:
    shifted = _A.addf(x, s.like(x, 3.0))
    return _A.divf(_clamp(s, shifted, s.like(x, 0.0), s.like(x, 6.0)), s.like(x, 6.0))


def _hardswish(s: Scalars, x: ir.Value) -> ir.Value:
    clamped = _clamp(s, _A.addf(x, s.like(x, 3.0)), s.like(x, 0.0), s.like(x, 6.0))
    return _A.divf(_A.mulf(x, clamped), s.like(x, 6.0))


def _softplus(s: Scalars, x: ir.Value) -> ir.Value:
    """log(1 + exp(x)); x itself above 20, as torch has it."""
    return select(compare("gt", x, s.like(x, 20.0)), x, _M.log1p(_exp(x)))


def _mish(s: Scalars, x: ir.Value) -> ir.Value:
    """x tanh(softplus(x)) = x n / (n + 2) for n = e (e + 2), e = exp(x); x itself above 20."""
    e = _exp(_A.minimumf(x, s.like(x, 20.0)))
    n = _A.mulf(e, _A.addf(e, s.like(x, 2.0)))
    small = _A.divf(_A.mulf(x, n), _A.addf(n, s.like(x, 2.0)))
    return select(compare("gt", x, s.like(x, 20.0)), x, small)


def _floordiv(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    """Divide as Python does: exact for every remainder, infinite or NaN for b = 0."""
    remainder = _A.remf(a, b)
    zero, one = s.like(a, 0.0), s.like(a, 1.0)
    quotient = _A.divf(_A.subf(a, remainder), b)
    signs = compare("ne", compare("lt", b, zero), compare("lt", remainder, zero))
    below = _A.andi(compare("ne", remainder, zero), signs)
    quotient = select(below, _A.subf(quotient, one), quotient)
    floor = _M.floor(quotient)
    over = compare("gt", _A.subf(quotient, floor), s.like(a, 0.5))
    floor = select(over, _A.addf(floor, one), floor)
    floor = select(compare("eq", quotient, zero), special.copysign(s, zero, _A.divf(a, b)), floor)
    return select(compare("eq", b, zero), _A.divf(a, b), floor)


def _remainder(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    """The remainder with the sign of b."""
    zero = s.like(a, 0.0)
    remainder = _A.remf(a, b)
    signs = compare("ne", compare("lt", b, zero), compare("lt", remainder, zero))
    adjust = _A.andi(compare("ne", remainder, zero), signs)
    return select(adjust, _A.addf(remainder, b), remainder)


def _hypot(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    """sqrt(a^2 + b^2) by the larger of the two, so that no square overflows."""
    x, y = _M.absf(a), _M.absf(b)
    large, small = _A.maximumf(x, y), _A.minimumf(x, y)
    ratio = _A.divf(small, large)
    plain = _A.mulf(large, _M.sqrt(_A.addf(_A.mulf(ratio, ratio), s.like(a, 1.0))))
    plain = select(compare("eq", large, s.like(a, 0.0)), large, plain)
    infinite = _A.ori(_isinf(s, a), _isinf(s, b))
    return select(infinite, s.like(a, math.inf), plain)


_TABLE: dict[str, Callable[..., ir.Value]] = {
    "neg": lambda s, x: _A.negf(x),
    "sign": _sign,
    "relu": lambda s, x: _A.maximumf(x, s.like(x, 0.0)),
    "reciprocal": lambda s, x: _A.divf(s.like(x, 1.0), x),
    "identity": lambda s, x: x,
    "isnan": _isnan,
    "isinf": _isinf,
    "isfinite": _isfinite,
    "sigmoid": _sigmoid,
    "silu": _silu,
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "hardsigmoid": _hardsigmoid,
    "hardswish": _hardswish,
    "softplus": _softplus,
    "mish": _mish,
    "add": lambda s, a, b: _A.addf(a, b),
    "sub": lambda s, a, b: _A.subf(a, b),
    "mul": lambda s, a, b: _A.mulf(a, b),
    "div": lambda s, a, b: _A.divf(a, b),
    "truncdiv": lambda s, a, b: _M.trunc(_A.divf(a, b)),
    "floordiv": _floordiv,
    "fmod": lambda s, a, b: _A.remf(a, b),
    "remainder": _remainder,
    "maximum": lambda s, a, b: _A.maximumf(a, b),
    "minimum": lambda s, a, b: _A.minimumf(a, b),
    "fmax": lambda s, a, b: _A.maxnumf(a, b),
    "fmin": lambda s, a, b: _A.minnumf(a, b),
    "clamp": _clamp,
    "hypot": _hypot,
    "copysign": special.copysign,
    "nextafter": special.nextafter,
    "erfinv": special.erfinv,
    "lgamma": special.lgamma,
    "digamma": special.digamma,
}

"""Special functions without an op in the math dialect; all are computed in f64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from metadef import ir

from .scalar import Scalars, compare, select

_A, _M = ir.arith, ir.math


def _in_double(function: Callable[[Scalars, ir.Value], ir.Value]) -> Callable[..., ir.Value]:
    """Compute an f32 argument in f64 and round the result."""

    def wrapped(s: Scalars, x: ir.Value) -> ir.Value:
        if isinstance(x.type, ir.F64Type):
            return function(s, x)
        wide = _A.extf(ir.F64Type.get(), x)
        return _A.truncf(x.type, function(s, wide))

    return wrapped


def _polynomial(s: Scalars, x: ir.Value, coefficients: Sequence[float]) -> ir.Value:
    """Horner's rule, highest power first."""
    value = s.like(x, coefficients[0])
    for c in coefficients[1:]:
        value = _A.addf(_A.mulf(value, x), s.like(x, c))
    return value


def _erfinv(s: Scalars, y: ir.Value) -> ir.Value:
    """Start from Giles' single-precision form (GPU Computing Gems, 2011), then Newton on erfc."""
    one, zero = s.like(y, 1.0), s.like(y, 0.0)
    magnitude = _M.absf(y)
    rest = _A.subf(one, magnitude)
    w = _A.negf(_M.log(_A.mulf(rest, _A.addf(one, magnitude))))
    centre = _polynomial(s, _A.subf(w, s.like(y, 2.5)), _GILES_CENTRE)
    tail = _polynomial(s, _A.subf(_M.sqrt(w), s.like(y, 3.0)), _GILES_TAIL)
    x = _A.mulf(select(compare("lt", w, s.like(y, 5.0)), centre, tail), magnitude)
    for _ in range(2):
        error = _A.subf(_M.erfc(x), rest)
        slope = _A.mulf(_M.exp(_A.negf(_A.mulf(x, x))), s.like(y, 2 / math.sqrt(math.pi)))
        x = _A.addf(x, _A.divf(error, slope))
    # Near 0 erfc has no digits left: there the series sqrt(pi)/2 (y + pi/12 y^3 + ...) is exact.
    square = _A.mulf(magnitude, magnitude)
    series = _A.mulf(_polynomial(s, square, _ERFINV_SERIES), magnitude)
    x = select(compare("lt", magnitude, s.like(y, 0.03)), series, x)
    x = select(compare("eq", magnitude, one), s.like(y, math.inf), x)
    x = select(compare("gt", magnitude, one), s.like(y, math.nan), x)
    return select(compare("eq", y, zero), y, copysign(s, x, y))


def _lgamma(s: Scalars, x: ir.Value) -> ir.Value:
    """Shift into [10, inf) by recurrence, Stirling's series there, reflection below 0.5."""
    one, half = s.like(x, 1.0), s.like(x, 0.5)
    reflected = compare("lt", x, half)
    z = select(reflected, _A.subf(one, x), x)
    product, shifted = one, z
    for _ in range(10):
        low = compare("lt", shifted, s.like(x, 10.0))
        product = select(low, _A.mulf(product, shifted), product)
        shifted = select(low, _A.addf(shifted, one), shifted)
    inverse = _A.divf(one, shifted)
    series = _A.mulf(_polynomial(s, _A.mulf(inverse, inverse), _STIRLING), inverse)
    stirling = _A.subf(_A.mulf(_A.subf(shifted, half), _M.log(shifted)), shifted)
    stirling = _A.addf(_A.addf(stirling, s.like(x, 0.5 * math.log(2 * math.pi))), series)
    positive = _A.subf(stirling, _M.log(product))
    sine = _M.absf(_sin_pi(s, x))
    reflection = _A.subf(_M.log(_A.divf(s.like(x, math.pi), sine)), positive)
    value = select(reflected, reflection, positive)
    pole = _A.andi(compare("le", x, s.like(x, 0.0)), compare("eq", x, _M.floor(x)))
    infinite = compare("eq", _M.absf(x), s.like(x, math.inf))
    return select(_A.ori(pole, infinite), s.like(x, math.inf), value)


def _digamma(s: Scalars, x: ir.Value) -> ir.Value:
    """Shift into [10, inf) by recurrence, the asymptotic series there, reflection below 0."""
    one, zero = s.like(x, 1.0), s.like(x, 0.0)
    reflected = compare("lt", x, zero)
    shifted = select(reflected, _A.subf(one, x), x)
    sum_ = zero
    for _ in range(10):
        low = compare("lt", shifted, s.like(x, 10.0))
        sum_ = select(low, _A.addf(sum_, _A.divf(one, shifted)), sum_)
        shifted = select(low, _A.addf(shifted, one), shifted)
    inverse = _A.divf(one, shifted)
    square = _A.mulf(inverse, inverse)
    series = _A.mulf(_polynomial(s, square, _DIGAMMA), square)
    value = _A.subf(_M.log(shifted), _A.mulf(inverse, s.like(x, 0.5)))
    value = _A.subf(_A.subf(value, series), sum_)
    fraction = _A.mulf(_A.subf(x, _M.floor(x)), s.like(x, math.pi))
    cotangent = _A.divf(s.like(x, math.pi), _M.tan(fraction))
    value = select(reflected, _A.subf(value, cotangent), value)
    whole = _A.andi(reflected, compare("eq", x, _M.floor(x)))
    value = select(whole, s.like(x, math.nan), value)
    at_zero = copysign(s, s.like(x, math.inf), _A.negf(x))
    return select(compare("eq", x, zero), at_zero, value)


def _sin_pi(s: Scalars, x: ir.Value) -> ir.Value:
    """|sin(pi x)| by the distance to the nearest integer, exact for large x."""
    distance = _A.subf(x, _M.roundeven(x))
    return _M.sin(_A.mulf(distance, s.like(x, math.pi)))


def copysign(s: Scalars, magnitude: ir.Value, sign: ir.Value) -> ir.Value:
    """Choose by the sign bit: LLVM's copysign fails to select when the sign is a widened bf16."""
    bits = ir.IntegerType.get_signless(ir.FloatType(sign.type).width)
    negative = compare("lt", _A.bitcast(bits, sign), s.constant(bits, 0))
    positive = _M.absf(magnitude)
    return select(negative, _A.negf(positive), positive)


def nextafter(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    """Return the next float after a towards b, by stepping its bits."""
    width = ir.FloatType(a.type).width
    bits = ir.IntegerType.get_signless(width)
    raw = _A.bitcast(bits, a)
    zero = s.like(a, 0.0)
    up = compare("lt", a, b)
    away = compare("eq", up, compare("gt", a, zero))
    one = s.constant(bits, 1)
    stepped = select(away, _A.addi(raw, one), _A.subi(raw, one))
    smallest = copysign(s, _A.bitcast(a.type, one), b)
    moved = select(compare("eq", a, zero), smallest, _A.bitcast(a.type, stepped))
    result = select(compare("eq", a, b), b, moved)
    unordered = _A.ori(compare("ne", a, a), compare("ne", b, b))
    return select(unordered, _A.addf(a, b), result)


erfinv = _in_double(_erfinv)
lgamma = _in_double(_lgamma)
digamma = _in_double(_digamma)

_GILES_CENTRE = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_GILES_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _series_of_erfinv(count: int) -> tuple[float, ...]:
    """Maclaurin coefficients of erfinv(y) / y in y^2, highest first (c_k by its recurrence)."""
    c = [1.0]
    for k in range(1, count):
        c.append(sum(c[m] * c[k - 1 - m] / ((m + 1) * (2 * m + 1)) for m in range(k)))
    half = math.sqrt(math.pi) / 2
    return tuple(c[k] / (2 * k + 1) * half ** (2 * k + 1) for k in reversed(range(count)))


_ERFINV_SERIES = _series_of_erfinv(6)
#: B(2k) / (2k (2k - 1)), k = 7..1 (Abramowitz and Stegun 6.1.41)
_STIRLING = (1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)
#: B(2k) / (2k), k = 7..1 (Abramowitz and Stegun 6.3.18)
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)

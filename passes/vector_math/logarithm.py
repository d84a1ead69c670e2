"""log, log2, log10 and log1p: split off the exponent, polynomial for a mantissa near 1."""

from __future__ import annotations

import math

from metadef.passes.vector_math.coefficients import LOG32, LOG64
from metadef.passes.vector_math.exponential import LN2_PARTS, LOG2_E
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    copysign,
    fma,
    polynomial,
    power_of_two,
)

LOG10_E = 0.4342944819032518
LOG10_2 = 0.3010299956639812
_SQRT_HALF = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}


@Elementwise
def log(x: Lanes) -> Lanes:
    """Natural logarithm. f32 and f64: 2 ulp, subnormal arguments included."""
    f, e = split(x)
    return at_the_edges(x, _combine(f, e))


@Elementwise
def log2(x: Lanes) -> Lanes:
    """Logarithm to base 2, exact for powers of two. f32 and f64: 3 ulp."""
    f, e = split(x)
    return at_the_edges(x, fma(_log1p_near_zero(f), LOG2_E, e))


@Elementwise
def log10(x: Lanes) -> Lanes:
    """Logarithm to base 10. f32 and f64: 3 ulp."""
    f, e = split(x)
    return at_the_edges(x, fma(e, LOG10_2, _log1p_near_zero(f) * LOG10_E))


@Elementwise
def log1p(x: Lanes) -> Lanes:
    """log(1 + x), exact in relative terms near zero. f32 and f64: 2 ulp.

    With 1 + x = 2^k m, m - 1 = 2^-k x + (2^-k - 1) is rounded once, and not at all for k = 0.
    """
    _, k = _exponent(x + 1.0)
    shrink = power_of_two(x.exponent_bias + 2 - k, x) * 0.25
    f = fma(shrink, x, shrink - 1.0)
    y = copysign(_combine(f, k.to_float(x.width)), x)
    y = (x > -1.0).select(y, (x.equals(-1.0)).select(x.splat(-math.inf), math.nan))
    return x.equals(math.inf).select(x, y)


def split(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return f and e with x = 2^e (1 + f), 1/sqrt(2) <= 1 + f < sqrt(2), for finite x > 0."""
    tiny = x < 2.0 ** (2 - x.exponent_bias - 1)
    lift = x.mantissa_bits + 1
    normal = tiny.select(x * 2.0**lift, x)
    m, e = _exponent(normal)
    e_float = e.to_float(x.width)
    return m - 1.0, tiny.select(e_float - float(lift), e_float)


def at_the_edges(x: Lanes, y: Lanes) -> Lanes:
    """Put the logarithm's values where x is infinite, zero, negative or NaN."""
    y = (x < math.inf).select(y, x)
    return (x > 0.0).select(y, x.equals(0.0).select(x.splat(-math.inf), math.nan))


def _exponent(x: Lanes) -> tuple[Lanes, Lanes]:
    """Return the mantissa in [1/sqrt(2), sqrt(2)) and the integer exponent of normal x > 0."""
    low = _SQRT_HALF[x.width]
    offset = x.bits() - low
    mantissa = (offset & ((1 << x.mantissa_bits) - 1)) + low
    return mantissa.as_float(), offset >> x.mantissa_bits


def _combine(f: Lanes, e: Lanes) -> Lanes:
    """Return e ln(2) + log(1 + f), the parts of ln(2) added smallest first."""
    high, low = LN2_PARTS[f.width]
    if f.width == 32:
        tail = fma(f * f * f, polynomial(LOG32, f), e * low)
        return fma(e, high, f - (fma(f * f, 0.5, -tail)))
    half_square = f * f * 0.5
    s = f / (f + 2.0)
    tail = _atanh_tail(s, half_square)
    return fma(e, high, f - (half_square - fma(e, low, tail)))


def _log1p_near_zero(f: Lanes) -> Lanes:
    if f.width == 32:
        tail = f * f * f * polynomial(LOG32, f)
        return f - fma(f * f, 0.5, -tail)
    half_square = f * f * 0.5
    return f - (half_square - _atanh_tail(f / (f + 2.0), half_square))


def _atanh_tail(s: Lanes, half_square: Lanes) -> Lanes:
    """Return log(1 + f) - f + f^2/2 with s = f / (2 + f): log(1 + f) = 2 atanh(s) and
    2s = f - s f, so the tail is s (f^2/2 + 2 s^2 p(s^2)) (Sun's fdlibm, e_log.c, 1993)."""
    z = s * s
    return s * fma(z * 2.0, polynomial(LOG64, z), half_square)

"""asin, acos, atan and atan2."""

from __future__ import annotations

import math

from metadef.passes.vector_math.coefficients import ASIN32, ASIN64, ATAN32, ATAN64
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    absolute,
    copysign,
    fma,
    polynomial,
    sqrt,
)

#: pi/2 in two parts by format
HALF_PI = {
    32: (1.5707963705062866, -4.371138828673793e-08),
    64: (1.5707963267948966, 6.123233995736766e-17),
}


@Elementwise
def asin(x: Lanes) -> Lanes:
    """Arc sine, NaN beyond 1. f32 and f64: 3 ulp.

    Beyond 1/2: asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
    """
    a = absolute(x)
    far, y = _asin_core(a)
    high, low = HALF_PI[x.width]
    return copysign(far.select(high - fma(y, 2.0, -low), y), x)


@Elementwise
def acos(x: Lanes) -> Lanes:
    """Arc cosine, NaN beyond 1. f32 and f64: 3 ulp."""
    far, y = _asin_core(absolute(x))
    high, low = HALF_PI[x.width]
    negative = x < 0.0
    twice = y + y
    beyond = negative.select(2.0 * high - (twice - 2.0 * low), twice)
    within = high - (copysign(y, x) - low)
    return far.select(beyond, within)


@Elementwise
def atan(x: Lanes) -> Lanes:
    """Arc tangent. f32 and f64: 3 ulp. Beyond 1: atan(x) = pi/2 - atan(1/x)."""
    a = absolute(x)
    far = a > 1.0
    y = _atan_core(far.select(1.0 / a, a))
    high, low = HALF_PI[x.width]
    return copysign(far.select(high - (y - low), y), x)


@Elementwise
def atan2(y: Lanes, x: Lanes) -> Lanes:
    """Angle of the point (x, y), with C's values for zeros and infinities. f32 and f64: 4 ulp."""
    ay, ax = absolute(y), absolute(x)
    steep = ay > ax
    top, bottom = steep.select(ax, ay), steep.select(ay, ax)
    quotient = top / bottom
    quotient = bottom.equals(0.0).select(bottom, quotient)
    quotient = top.equals(math.inf).select(top.splat(1.0), quotient)
    angle = _atan_core(quotient)
    high, low = HALF_PI[y.width]
    angle = steep.select(high - (angle - low), angle)
    left = x.bits() < 0
    angle = left.select(2.0 * high - (angle - 2.0 * low), angle)
    angle = copysign(angle, y)
    return x.is_nan().select(x, y.is_nan().select(y, angle))


def _asin_core(a: Lanes) -> tuple[Lanes, Lanes]:
    """Return whether a > 1/2, and asin(a) or else asin(sqrt((1 - a) / 2))."""
    far = a > 0.5
    rest = (1.0 - a) * 0.5
    t = far.select(rest, a * a)
    z = far.select(sqrt(rest), a)
    return far, fma(z * t, polynomial(ASIN32 if a.width == 32 else ASIN64, t), z)


def _atan_core(z: Lanes) -> Lanes:
    """Return atan(z) for 0 <= z <= 1."""
    t = z * z
    return fma(z * t, polynomial(ATAN32 if z.width == 32 else ATAN64, t), z)

"""tanh, sinh, cosh and their inverses."""

from __future__ import annotations

import math

from metadef.passes.vector_math.coefficients import SINH64
from metadef.passes.vector_math.exponential import exp, expm1_within
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    absolute,
    copysign,
    fma,
    polynomial,
    sqrt,
    through_double,
)
from metadef.passes.vector_math.logarithm import log, log1p

LN2 = math.log(2.0)


@Elementwise
def tanh(x: Lanes) -> Lanes:
    """Hyperbolic tangent, never beyond 1, as e / (e + 2), e = expm1(2x). f32 and f64: 3 ulp."""
    e = expm1_within(absolute(x).at_most(9.02 if x.width == 32 else 20.0) * 2.0)
    return copysign(e / (e + 2.0), x)


@Elementwise
@through_double
def sinh(x: Lanes) -> Lanes:
    """Hyperbolic sine. f32: 1 ulp; f64: 4 ulp."""
    a = absolute(x)
    t = a * a
    small = fma(a * t, polynomial(SINH64, t), a)
    half = exp.lanes(a * 0.5)
    reciprocal = 0.5 / (half * half)
    large = (half * 0.5) * half - reciprocal
    return copysign((a < 1.0).select(small, large), x)


@Elementwise
@through_double
def cosh(x: Lanes) -> Lanes:
    """Hyperbolic cosine. f32: 1 ulp; f64: 4 ulp."""
    half = exp.lanes(absolute(x) * 0.5)
    return fma(half * 0.5, half, 0.5 / (half * half))


@Elementwise
@through_double
def asinh(x: Lanes) -> Lanes:
    """Inverse hyperbolic sine. f32: 1 ulp; f64: 4 ulp."""
    a = absolute(x)
    t = a * a
    near = log1p.lanes(a + t / (sqrt(t + 1.0) + 1.0))
    far = log.lanes(a) + LN2
    return copysign((a > 1e150).select(far, near), x)


@Elementwise
@through_double
def acosh(x: Lanes) -> Lanes:
    """Inverse hyperbolic cosine, NaN below 1. f32: 1 ulp; f64: 4 ulp."""
    t = x - 1.0
    near = log1p.lanes(t + sqrt(fma(t, t, t + t)))
    far = log.lanes(x) + LN2
    return (x >= 1.0).select((x > 1e150).select(far, near), math.nan)


@Elementwise
@through_double
def atanh(x: Lanes) -> Lanes:
    """Inverse hyperbolic tangent, NaN beyond 1. f32: 1 ulp; f64: 4 ulp."""
    a = absolute(x)
    return copysign(log1p.lanes((a + a) / (1.0 - a)) * 0.5, x)

"""erf and erfc."""

from __future__ import annotations

from metadef.passes.vector_math.coefficients import (
    ERF32,
    ERF64,
    ERFC64,
    EXP2M1_32,
)
from metadef.passes.vector_math.exponential import exp
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    absolute,
    copysign,
    fma,
    in_halves,
    polynomial,
    power_of_two,
    round_to_integer,
    through_double,
    with_sign,
)

NEGATIVE_ERF32 = tuple(-c for c in ERF32)


@Elementwise
def erf(x: Lanes) -> Lanes:
    """Error function, never beyond 1. f32 and f64: 3 ulp."""
    if x.width == 32:
        return _erf32(x)
    a = absolute(x)
    small = fma(x, polynomial(ERF64, x * x), x)
    large = copysign(1.0 - _erfc_of_positive(a), x)
    return (a < 1.0).select(small, large)


def _erf32(x: Lanes) -> Lanes:
    """erf(a) = 1 - 2^-g with a polynomial for g = -log2(erfc(a)).

    What is subtracted from 1 carries the rounding errors, so they fade where erf saturates; near
    zero, 2^-g - 1 is exact in relative terms. One long chain: the polynomials are in halves.
    """
    a = absolute(x).at_most(3.93)
    y = a * polynomial(NEGATIVE_ERF32, a)
    n, exponent = round_to_integer(y, 1.0, x.exponent_bias)
    r = y - n
    p = r * in_halves(EXP2M1_32, r)
    two_n = power_of_two(exponent, x)
    return with_sign(fma(-two_n, p, 1.0 - two_n), x)


@Elementwise
@through_double
def erfc(x: Lanes) -> Lanes:
    """1 - erf(x), exact in relative terms in the right tail. f32: 1 ulp; f64: 8 ulp."""
    a = absolute(x)
    tail = _erfc_of_positive(a)
    near = 1.0 - fma(x, polynomial(ERF64, x * x), x)
    far = (x < 0.0).select(2.0 - tail, tail)
    return (a < 0.25).select(near, far)


def _erfc_of_positive(a: Lanes) -> Lanes:
    """erfc(a) = exp(-a^2) g(u) / (1 + 2a), u = (a - 4) / (a + 4): Shepherd and Laframboise,
    "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x", Math. Comp. 36, 1981.

    The rounding error of a^2 would grow by a^2 in exp: it is put back as a factor.
    """
    a = a.at_most(28.0)
    square = a * a
    lost = fma(a, a, -square)
    g = polynomial(ERFC64, (a - 4.0) / (a + 4.0))
    e = exp.lanes(-square)
    return fma(e, -lost, e) * g / fma(a, 2.0, 1.0)

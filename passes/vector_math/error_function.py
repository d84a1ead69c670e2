"""erf and erfc."""

from __future__ import annotations

from metadef.passes.vector_math.coefficients import (
    ERF32,
    ERF32_DENOMINATOR,
    ERF64,
    ERFC64,
)
from metadef.passes.vector_math.exponential import exp
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    absolute,
    copysign,
    fma,
    polynomial,
    through_double,
)


@Elementwise
def erf(x: Lanes) -> Lanes:
    """Error function. f32: 3 ulp, one rational function; f64: 3 ulp."""
    if x.width == 32:
        x = x.at_most(3.93).at_least(-3.93)
        t = x * x
        return x * polynomial(ERF32, t) / polynomial(ERF32_DENOMINATOR, t)
    a = absolute(x)
    small = fma(x, polynomial(ERF64, x * x), x)
    large = copysign(1.0 - _erfc_of_positive(a), x)
    return (a < 1.0).select(small, large)


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

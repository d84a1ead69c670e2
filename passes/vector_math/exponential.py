"""exp, exp2, expm1: reduce to |r| <= ln(2)/2 (Cody and Waite, 1980), polynomial, scale by 2^n."""

from __future__ import annotations

from collections.abc import Sequence

from metadef.passes.vector_math.coefficients import EXP32, EXP64, EXPM1_32
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    copysign,
    fma,
    polynomial,
    power_of_two,
    round_to_integer,
)

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453
#: ln(2) in two parts by format; the high part times an integer exponent is exact under fma
LN2_PARTS = {32: (0.6931471824645996, -1.9046542121259336e-09), 64: (LN2, 2.3190468138462996e-17)}
#: the same of r / 2: e^(r/2) = 1 + r p(r), exactly as EXP32 rounds
HALVED_EXP32 = tuple(c * 0.5 ** (k + 1) for k, c in enumerate(EXP32))


@Elementwise
def exp(x: Lanes) -> Lanes:
    """e^x. f32: 3 ulp; f64: 1 ulp; gradual underflow, overflow to infinity."""
    return _exp32(x) if x.width == 32 else _exp64(x)


@Elementwise
def exp2(x: Lanes) -> Lanes:
    """2^x. f32: 3 ulp; f64: 2 ulp; gradual underflow, overflow to infinity."""
    if x.width == 32:
        x = x.at_most(129.0).at_least(-151.0)
        m, exponent = round_to_integer(x, 0.5, x.exponent_bias)
        r = fma(x, 0.5, -m)
        return _squared(r * LN2, EXP32, exponent)
    x = x.at_most(1025.0).at_least(-1076.0)
    n, n_bits = round_to_integer(x, 1.0)
    r = (x - n) * LN2
    return scale(fma(r * r, polynomial(EXP64, r), r) + 1.0, n_bits)


@Elementwise
def expm1(x: Lanes) -> Lanes:
    """e^x - 1, exact in relative terms near zero. f32 and f64: 2 ulp.

    2^n (1 + p) - 1 = 2 (2^(n-1) p + (2^(n-1) - 1/2)): halved, so that the largest n does not
    overflow early.
    """
    low, high, table = (-18.0, 89.0, EXPM1_32) if x.width == 32 else (-40.0, 710.0, EXP64)
    r, exponent = reduce(x.at_most(high).at_least(low), x.exponent_bias - 1)
    p = fma(r * r, polynomial(table, r), r)
    half_scale = power_of_two(exponent, x)
    y = fma(half_scale, p, half_scale - 0.5)
    return copysign(y + y, x)


def expm1_within(x: Lanes) -> Lanes:
    """e^x - 1 where neither e^x nor its reciprocal leaves the normal numbers."""
    r, exponent = reduce(x, x.exponent_bias)
    p = fma(r * r, polynomial(EXPM1_32 if x.width == 32 else EXP64, r), r)
    two_n = power_of_two(exponent, x)
    return fma(two_n, p, two_n - 1.0)


def reduce(x: Lanes, bias: int = 0) -> tuple[Lanes, Lanes]:
    """Return r and the integer n + bias with x = n ln(2) + r, |r| <= ln(2)/2."""
    high, low = LN2_PARTS[x.width]
    n, biased = round_to_integer(x, LOG2_E, bias)
    return fma(n, -low, fma(n, -high, x)), biased


def scale(p: Lanes, n: Lanes) -> Lanes:
    """Return p * 2^n for p near 1, rounded once even where the result is subnormal or infinite.

    Two factors: no power of two in the format reaches the whole range of n. Multiplied and not
    added to the exponent's bits, so that a NaN stays one.
    """
    half = n >> 1
    first = power_of_two(half + p.exponent_bias, p)
    return p * first * power_of_two(n - half + p.exponent_bias, p)


def _exp32(x: Lanes) -> Lanes:
    """e^x = (e^(x/2))^2: the power of two is always normal, the square does the rest."""
    x = x.at_most(89.0).at_least(-104.0)
    high, low = LN2_PARTS[32]
    n, exponent = round_to_integer(x, LOG2_E / 2, x.exponent_bias)
    r = fma(n, -2 * low, fma(n, -2 * high, x))
    return _squared(r, HALVED_EXP32, exponent)


def _squared(r: Lanes, table: Sequence[float], exponent: Lanes) -> Lanes:
    """Return ((1 + r p(r)) 2^m)^2 for the biased exponent of 2^m; a NaN in r stays."""
    y = fma(r, polynomial(table, r), 1.0) * power_of_two(exponent, r)
    return y * y


def _exp64(x: Lanes) -> Lanes:
    r, n = reduce(x.at_most(710.0).at_least(-746.0))
    return scale(fma(r * r, polynomial(EXP64, r), r) + 1.0, n)

"""powf, fpowi, ipowi, cbrt and rsqrt."""

from __future__ import annotations

import math

from metadef import ir
from metadef.passes.vector_math.coefficients import CBRT64, EXP64, LOG64
from metadef.passes.vector_math.exponential import LN2_PARTS, exp2, reduce, scale
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    absolute,
    copysign,
    fma,
    polynomial,
    round_even,
    sqrt,
    through_double,
)
from metadef.passes.vector_math.logarithm import log2, split

#: exponents that a few multiplications serve, as PyTorch does
_SHORT = (0.5, -0.5, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0)


@Elementwise
def powf(x: Lanes, y: Lanes) -> Lanes:
    """x^y with C's values at the edges. f32: 1 ulp, f64: 4 ulp; 2 ulp for a short constant y."""
    exponent = _constant(y)
    if exponent in _SHORT:
        return _short_power(x, exponent)
    if x.width == 32:
        return _power(x.to_float(64), y.to_float(64), single=True).to_float(32)
    return _power(x, y, single=False)


@Elementwise
def fpowi(x: Lanes, n: Lanes) -> Lanes:
    """x^n for integers n, exact up to 2^53 as a float. f32: 1 ulp; f64: 4 ulp."""
    exponent = _constant(n)
    if exponent in _SHORT:
        return _short_power(x, exponent)
    y = _power(x.to_float(64), n.to_float(64), single=x.width == 32)
    return y.to_float(x.width)


@Elementwise
def ipowi(x: Lanes, n: Lanes) -> Lanes:
    """Integer power modulo 2^width by squaring; a negative power is 1/x^|n| rounded to zero."""
    index = ir.IndexType.get()
    bounds = [ir.arith.ConstantOp(index, v).result for v in (0, x.width, 1)]
    loop = ir.scf.ForOp(*bounds, [x.splat(1).value, x.value, n.value])
    with ir.InsertionPoint(loop.body):
        power, square, bits = (Lanes.of(v) for v in loop.inner_iter_args)
        odd = (bits & 1).equals(1)
        step = [odd.select(power * square, power), square * square, bits.shift_right_logical(1)]
        ir.scf.YieldOp([v.value for v in step])
    positive = Lanes.of(loop.results[0])
    one_or_zero = x.equals(1).select(x.splat(1), 0)
    sign = (n & 1).equals(1).select(x.splat(-1), 1)
    negative = x.equals(-1).select(sign, one_or_zero)
    return (n < 0).select(negative, positive)


@Elementwise
def rsqrt(x: Lanes) -> Lanes:
    """1 / sqrt(x), both exactly rounded: 2 ulp."""
    return 1.0 / sqrt(x)


@Elementwise
@through_double
def cbrt(x: Lanes) -> Lanes:
    """Cube root. f32 and f64: 1 ulp. A polynomial to 2^-16, then two of Newton's steps."""
    a = absolute(x)
    f, e_float = split(a)
    magic = 1.5 * 2.0**x.mantissa_bits
    e = (e_float + magic).bits() - x.splat(magic).bits()
    # floor(e / 3) for |e| < 1200, as a multiplication of a positive number.
    third = (((e + 1200) * 0x5556) >> 16) - 400
    rest = e - third * 3
    m = f + 1.0
    target = (m.bits() + (rest << x.mantissa_bits)).as_float()
    root = rest.equals(1).select(m.splat(2 ** (1 / 3)), 1.0)
    y = polynomial(CBRT64, m) * rest.equals(2).select(m.splat(4 ** (1 / 3)), root)
    for _ in range(2):
        square = y * y
        y = y - fma(square, y, -target) / (square * 3.0)
    y = copysign((y.bits() + (third << x.mantissa_bits)).as_float(), x)
    return ((a > 0.0) & (a < math.inf)).select(y, x)


def _short_power(x: Lanes, exponent: float) -> Lanes:
    """x^exponent for an exponent of `_SHORT`."""
    size = abs(exponent)
    if size == 0.5:
        power = sqrt(x)
    elif size == 1.0:
        power = x
    else:
        square = x * x
        power = square if size == 2.0 else square * (x if size == 3.0 else square)
    return power if exponent > 0 else 1.0 / power


def _power(x: Lanes, y: Lanes, single: bool) -> Lanes:
    """x^y in f64; `single` when 2^-40 of relative error is enough."""
    a = absolute(x)
    p = exp2.lanes(y * log2.lanes(a)) if single else _exp_of_product(y, *_log_parts(a))
    whole = round_even(y).equals(y)
    half = y * 0.5
    odd = whole & ~round_even(half).equals(half)
    p = ((x.bits() < 0) & odd).select(-p, p)
    outside = (x < 0.0) & ~whole & (a < math.inf)
    p = outside.select(x.splat(math.nan), p)
    p = y.is_nan().select(y, p)
    one = y.equals(0.0) | x.equals(1.0) | (x.equals(-1.0) & absolute(y).equals(math.inf))
    return one.select(x.splat(1.0), p)


def _log_parts(a: Lanes) -> tuple[Lanes, Lanes]:
    """Return log(a) in two parts, to about 2^-64: 2 atanh(f / (2 + f)) in double-double arithmetic
    (T. Dekker, "A floating-point technique for extending the available precision", 1971)."""
    f, e = split(a)
    bottom = f + 2.0
    bottom_low = f - (bottom - 2.0)
    s = f / bottom
    s_low = (fma(-s, bottom, f) - s * bottom_low) / bottom
    z = s * s
    z_low = fma(s, s, -z) + 2.0 * s * s_low
    tail = z * polynomial(LOG64[1:], z)
    q = tail + LOG64[0]
    q_low = (LOG64[0] - q) + tail
    cube = s * z
    cube_low = fma(s, z, -cube) + fma(s, z_low, s_low * z)
    t = cube * q
    t_low = fma(cube, q, -t) + fma(cube, q_low, cube_low * q)
    half = s + t
    half_low = (s - half) + t + (s_low + t_low)
    log_2, log_2_low = LN2_PARTS[64]
    whole = e * log_2
    whole_low = fma(e, log_2, -whole) + e * log_2_low
    m = half * 2.0
    high = whole + m
    # Knuth's two-sum: neither part is always the larger.
    shadow = high - whole
    low = (whole - (high - shadow)) + (m - shadow) + (whole_low + half_low * 2.0)
    ordinary = (a > 0.0) & (a < math.inf)
    edge = (a > 0.0).select(a, a.equals(0.0).select(a.splat(-math.inf), math.nan))
    return ordinary.select(high, edge), ordinary.select(low, 0.0)


def _exp_of_product(y: Lanes, log: Lanes, log_low: Lanes) -> Lanes:
    """Return exp(y (log + log_low))."""
    product = y * log
    low = fma(y, log, -product) + y * log_low
    low = (absolute(product) < 746.0).select(low, 0.0)
    r, n = reduce(product.at_most(746.0).at_least(-746.0))
    r = r + low
    p = fma(r * r, polynomial(EXP64, r), r) + 1.0
    return scale(p, n)


def _made_by(value: ir.Value, *names: str) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.operation.name in names


def _constant(x: Lanes) -> float | None:
    """Return the number that all lanes hold when the IR says so, seen through extensions."""
    value = x.value
    while _made_by(value, "arith.extf", "vector.broadcast"):
        value = value.owner.operands[0]
    if not _made_by(value, "arith.constant"):
        return None
    attribute = value.owner.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    return float(attribute.value) if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) else None

"""Decompositions of special functions, which torch has only as kernels.

Evaluated in double precision from fits that are good to about 2^-38, for results in single
precision and below; double precision stays with torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from . import special_coefficients as fits

aten = torch.ops.aten

Elementwise = Callable[[Tensor], Tensor]

#: op -> decomposition
SPECIAL_FUNCTIONS: dict[Any, Callable[..., Any]] = {}


def _decomposes(*ops: Any) -> Callable[[Elementwise], Elementwise]:
    """Declare the function of a double-precision tensor the decomposition of elementwise ops."""

    def wrap(function: Elementwise) -> Elementwise:
        def decomposition(x: Tensor) -> Any:
            dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
            if dtype == torch.float64 or x.is_complex():
                return NotImplemented
            return function(x.to(torch.float64)).to(dtype)

        for op in ops:
            SPECIAL_FUNCTIONS[op.default] = decomposition
        return function

    return wrap


def _fit(fit: fits.Fit, u: Tensor) -> Tensor:
    """Evaluate a fit by Horner's rule."""
    low, high, coefficients = fit
    v = (u * 2 - (low + high)) / (high - low)
    value = torch.full_like(v, coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = value * v + coefficient
    return value


@_decomposes(aten.special_i0e)
def _i0e(x: Tensor) -> Tensor:
    t = x.abs()
    large = _fit(fits.I0E_LARGE, 8 / t) / t.sqrt()
    return torch.where(t <= 8, _fit(fits.I0E_SMALL, t), large)


@_decomposes(aten.i0, aten.special_modified_bessel_i0)
def _i0(x: Tensor) -> Tensor:
    return x.abs().exp() * _i0e(x)


@_decomposes(aten.special_i1e)
def _i1e(x: Tensor) -> Tensor:
    t = x.abs()
    large = _fit(fits.I1E_LARGE, 8 / t) / t.sqrt()
    value = torch.where(t <= 8, t * _fit(fits.I1E_SMALL, t), large)
    return torch.where(x < 0, -value, value)


@_decomposes(aten.special_i1, aten.special_modified_bessel_i1)
def _i1(x: Tensor) -> Tensor:
    return x.abs().exp() * _i1e(x)


@_decomposes(aten.special_scaled_modified_bessel_k0)
def _k0e(x: Tensor) -> Tensor:
    small = _fit(fits.K0_SMALL, x * x) - (x / 2).log() * _i0(x)
    large = _fit(fits.K0E_LARGE, 2 / x) / x.sqrt()
    return torch.where(x <= 2, x.exp() * small, large)


@_decomposes(aten.special_modified_bessel_k0)
def _k0(x: Tensor) -> Tensor:
    return (-x).exp() * _k0e(x)


@_decomposes(aten.special_scaled_modified_bessel_k1)
def _k1e(x: Tensor) -> Tensor:
    small = _fit(fits.K1_SMALL, x * x) / x + (x / 2).log() * _i1(x)
    large = _fit(fits.K1E_LARGE, 2 / x) / x.sqrt()
    value = torch.where(x <= 2, x.exp() * small, large)
    return torch.where(x == 0, math.inf, value)


@_decomposes(aten.special_modified_bessel_k1)
def _k1(x: Tensor) -> Tensor:
    return (-x).exp() * _k1e(x)


@_decomposes(aten.special_bessel_j0)
def _j0(x: Tensor) -> Tensor:
    t = x.abs()
    p, q, turn = _hankel(t, 0)
    large = _amplitude(t) * (p * turn.cos() - q * turn.sin())
    return torch.where(t <= 8, _fit(fits.J0_SMALL, x * x), large)


@_decomposes(aten.special_bessel_j1)
def _j1(x: Tensor) -> Tensor:
    t = x.abs()
    p, q, turn = _hankel(t, 1)
    large = _amplitude(t) * (p * turn.cos() - q * turn.sin())
    value = torch.where(t <= 8, t * _fit(fits.J1_SMALL, x * x), large)
    return torch.where(x < 0, -value, value)


@_decomposes(aten.special_bessel_y0)
def _y0(x: Tensor) -> Tensor:
    p, q, turn = _hankel(x, 0)
    large = _amplitude(x) * (p * turn.sin() + q * turn.cos())
    small = _fit(fits.Y0_SMALL, x * x) + 2 / math.pi * x.log() * _j0(x)
    return torch.where(x <= 8, small, large)


@_decomposes(aten.special_bessel_y1)
def _y1(x: Tensor) -> Tensor:
    p, q, turn = _hankel(x, 1)
    large = _amplitude(x) * (p * turn.sin() + q * turn.cos())
    small = x * _fit(fits.Y1_SMALL, x * x) + 2 / math.pi * (x.log() * _j1(x) - 1 / x)
    value = torch.where(x <= 8, small, large)
    return torch.where(x == 0, -math.inf, value)


def _hankel(x: Tensor, order: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return P, Q and the angle of Hankel's form of the Bessel functions, for x >= 8."""
    p, q = ((fits.P0_LARGE, fits.Q0_LARGE), (fits.P1_LARGE, fits.Q1_LARGE))[order]
    u = 8 / x
    return _fit(p, u * u), u * _fit(q, u * u), x - (order / 2 + 0.25) * math.pi


def _amplitude(x: Tensor) -> Tensor:
    return (2 / math.pi / x).sqrt()


@_decomposes(aten.special_spherical_bessel_j0)
def _spherical_j0(x: Tensor) -> Tensor:
    value = torch.where(x == 0, 1.0, x.sin() / x)
    return torch.where(x.isinf(), 0.0, value)


@_decomposes(aten.special_erfcx)
def _erfcx(x: Tensor) -> Tensor:
    u = 4 / (4 + x.abs())
    value = u * _fit(fits.ERFCX, u)
    return torch.where(x < 0, 2 * (x * x).exp() - value, value)


@_decomposes(aten.special_ndtri)
def _ndtri(p: Tensor) -> Tensor:
    """Give the tails by a fit: 1 - 2p has no digits left there."""
    q = torch.minimum(p, 1 - p)
    tail = _fit(fits.NDTRI_TAIL, (-2 * q.log()).sqrt())
    tail = torch.where(q == 0, math.inf, tail)
    tail = torch.where(p < 0.5, -tail, tail)
    return torch.where(q <= math.exp(-4.5), tail, math.sqrt(2) * (2 * p - 1).erfinv())


#: Bernoulli numbers B2, B4, ..
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)
#: terms of a series before Euler and Maclaurin's formula takes the rest
_TERMS = 10


def _hurwitz(s: int, x: Tensor) -> Tensor:
    """Return the sum of (x + k)^-s for k >= 0, for x >= 1/2, by Euler and Maclaurin's formula."""
    total = torch.zeros_like(x)
    for k in range(_TERMS):
        total = total + (x + k).pow(-s)
    a = x + _TERMS
    total = total + a.pow(1 - s) / (s - 1) + a.pow(-s) / 2
    rising = float(s)
    for j, bernoulli in enumerate(_BERNOULLI, start=1):
        total = total + bernoulli / math.factorial(2 * j) * rising * a.pow(1 - s - 2 * j)
        rising *= (s + 2 * j - 1) * (s + 2 * j)
    return total


def _all_integers(s: int, x: Tensor) -> Tensor:
    """Return the sum of (x + k)^-s over all k: derivatives of pi cot(pi x), polynomials in cot."""
    polynomial = [0.0, 1.0]  # in c = cot(pi x); c' = -pi (1 + c^2)
    for _ in range(s - 1):
        slopes = [i * a for i, a in enumerate(polynomial)][1:]
        polynomial = [0.0] * (len(slopes) + 2)
        for i, slope in enumerate(slopes):
            polynomial[i] -= slope
            polynomial[i + 2] -= slope
    rest = (x - x.round()) * math.pi
    cot = rest.cos() / rest.sin()
    value = torch.zeros_like(x)
    for coefficient in reversed(polynomial):
        value = value * cot + coefficient if coefficient else value * cot
    return value * ((-1) ** (s - 1) * math.pi**s / math.factorial(s - 1))


def _polygamma(n: int, x: Tensor) -> Any:
    """Give n! times Hurwitz's zeta function of n + 1, reflected for x < 1/2."""
    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    if dtype == torch.float64 or x.is_complex() or n > 20:
        return NotImplemented
    if n == 0:
        return x.to(dtype).digamma()
    s, wide = n + 1, x.to(torch.float64)
    left = wide < 0.5
    zeta = _hurwitz(s, torch.where(left, 1 - wide, wide))
    zeta = torch.where(left, _all_integers(s, wide) - (-1) ** s * zeta, zeta)
    zeta = torch.where((wide <= 0) & (wide == wide.round()), math.inf, zeta)
    return (zeta * ((-1) ** (n + 1) * math.factorial(n))).to(dtype)


SPECIAL_FUNCTIONS[aten.polygamma.default] = _polygamma

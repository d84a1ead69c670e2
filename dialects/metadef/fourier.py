"""Discrete Fourier transforms of real values for products instead of windows, as straight lines.

A circular convolution of `length` values is a product at each frequency. Real values have
conjugate spectra, of which half is kept, and a product of complex numbers takes three real ones
(Karatsuba): `spectrum` gives 3 length / 2 - 1 numbers whose products with those of other values are
what `signal` takes back. So tiles of an image are transformed along H and along W, each on its own,
and what lies between is a product for each pair of points, as with Winograd's.

A spectrum's even frequencies are that of the sums of the two halves; the odd ones that of complex
values, half as many, made of their differences and turned by a root of unity (Sorensen et al. 1987,
"Real-Valued Fast Fourier Transform Algorithms"). The rounding error grows with log(length).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")
Complex = tuple[T, T]

#: of the transforms: powers of two. The longest one whose straight line the registers still hold
#: in part; images rarely have more than that.
LENGTHS = (8, 16, 32, 64)


class Arithmetic(Protocol[T]):
    """What transforms are made of: numbers, arrays or expressions `T`."""

    def add(self, a: T, b: T) -> T: ...
    def sub(self, a: T, b: T) -> T: ...
    def scale(self, factor: float, a: T) -> T: ...
    def fma(self, factor: float, a: T, b: T) -> T:
        """Return factor * a + b."""


def points_of(length: int) -> int:
    """Return how many numbers a spectrum of `length` values has, for products."""
    return 3 * length // 2 - 1


def spectrum(values: Sequence[T], on: Arithmetic[T]) -> list[T]:
    """Return the points of a power of two of values, 2 or more."""
    return _Transform(on).forward(list(values))


def signal(points: Sequence[T], on: Arithmetic[T]) -> list[T]:
    """Return the values, times their number, from products of spectra."""
    return _Transform(on).backward(list(points))


@cache
def steps(length: int) -> tuple[int, int]:
    """Return the arithmetic instructions of `spectrum` and of `signal`."""
    there, back = _Count(), _Count()
    spectrum([None] * length, there)
    signal([None] * points_of(length), back)
    return there.count, back.count


@dataclass(frozen=True)
class _Transform(Generic[T]):
    on: Arithmetic[T]

    def forward(self, values: list[T]) -> list[T]:
        """Return first the two real points, then three for each complex one."""
        low, high = _halves(values)
        sums = [self.on.add(a, b) for a, b in zip(low, high, strict=True)]
        rest = [self.on.sub(a, b) for a, b in zip(low, high, strict=True)]
        if len(values) == 2:
            return [*sums, *rest]
        turned = [
            self._turned(z, turn / len(values))
            for turn, z in enumerate(zip(*_halves(rest), strict=True))
        ]
        odd = [p for a, b in self._complex(turned) for p in (a, b, self.on.add(a, b))]
        return [*self.forward(sums), *odd]

    def backward(self, points: list[T]) -> list[T]:
        on = self.on
        if len(points) == 2:
            return [on.add(*points), on.sub(*points)]
        length = (len(points) + 1) * 2 // 3
        even, odd = points[: points_of(length // 2)], points[points_of(length // 2) :]
        products = [
            (on.sub(a, b), on.sub(c, on.add(a, b)))
            for a, b, c in zip(odd[::3], odd[1::3], odd[2::3], strict=True)
        ]
        turned = [
            self._turned(z, -turn / length)
            for turn, z in enumerate(self._complex(products, back=True))
        ]
        rest = [re for re, _ in turned] + [im for _, im in turned]
        sums = self.backward(even)
        # Frequencies stand for their conjugates too.
        return [on.fma(f, b, a) for f in (2.0, -2.0) for a, b in zip(sums, rest, strict=True)]

    def _complex(self, values: list[Complex[T]], back: bool = False) -> list[Complex[T]]:
        """Return the complex transform, even frequencies first; or from there back."""
        on, count = self.on, len(values)
        if count == 1:
            return values
        low, high = _halves(values)
        if back:
            low = self._complex(low, back)
            high = [
                self._turned(z, -turn / count) for turn, z in enumerate(self._complex(high, back))
            ]
        pairs = list(zip(low, high, strict=True))
        sums = [(on.add(a[0], b[0]), on.add(a[1], b[1])) for a, b in pairs]
        rest = [(on.sub(a[0], b[0]), on.sub(a[1], b[1])) for a, b in pairs]
        if back:
            return [*sums, *rest]
        odd = [self._turned(z, turn / count) for turn, z in enumerate(rest)]
        return [*self._complex(sums), *self._complex(odd)]

    def _turned(self, z: Complex[T], turns: float) -> Complex[T]:
        """Return a complex number times e^(2 pi i turns)."""
        if turns == 0:
            return z
        on, (re, im) = self.on, z
        if abs(turns) == 0.25:
            return (on.scale(-1.0, im), re) if turns > 0 else (im, on.scale(-1.0, re))
        cos, sin = math.cos(2 * math.pi * turns), math.sin(2 * math.pi * turns)
        return on.fma(-sin, im, on.scale(cos, re)), on.fma(cos, im, on.scale(sin, re))


@dataclass
class _Count:
    """Arithmetic that only counts its instructions."""

    count: int = 0

    def add(self, a: None, b: None) -> None:
        self.count += 1

    sub = add

    def scale(self, factor: float, a: None) -> None:
        self.count += 1

    def fma(self, factor: float, a: None, b: None) -> None:
        self.count += 1


def _halves(values: list[T]) -> tuple[list[T], list[T]]:
    return values[: len(values) // 2], values[len(values) // 2 :]

"""Winograd's minimal filtering of 3x3 windows: the matrices of F(m x m, 3 x 3), from its points.

A tile of m x m outputs needs m + 2 inputs each way. With the input d, the weight g and matrices
that `transforms(m)` gives, it is `A ((G g G') * (B d B')) A'`, `*` element by element: (m + 2)^2
products where the sum over windows takes 9 m^2 (Lavin, Gray, 2015, "Fast Algorithms for
Convolutional Neural Networks"). The matrices evaluate polynomials at m + 1 points and at infinity,
multiply there, and interpolate (Toom, Cook).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

#: windows of so many elements each way
WINDOW = 3
#: m -> finite points. Rounding errors grow with the points' spread: these are the best found by
#: Barabasz, Anderson, Soodhalter, Gregg (2018, "Error Analysis and Improving the Accuracy of
#: Winograd Convolution for Deep Neural Networks"); 1/2 beside -2 halves the error of 2 beside -2.
POINTS: dict[int, tuple[Fraction, ...]] = {
    2: (Fraction(0), Fraction(1), Fraction(-1)),
    3: (Fraction(0), Fraction(1), Fraction(-1), Fraction(2)),
    4: (Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 2), Fraction(-2)),
}

#: m -> channels from which its sums are within four times the error of a direct sum in f32, on
#: random images: that sum has nine times as many terms, and its error grows with their number
LEAST_CHANNELS = {2: 1, 3: 16, 4: 32}

Matrix = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Transforms:
    """Matrices for input, weight and output: B [n, n], G [n, 3], A [m, n] with n = m + 2."""

    input: Matrix
    weight: Matrix
    output: Matrix


@cache
def transforms(tile: int) -> Transforms:
    """Return the matrices for tiles of `tile` outputs each way; all but G are exact in binary."""
    points = POINTS[tile]
    every = _coefficients(points)
    values, inputs = [], []
    for i, point in enumerate(points):
        others = [*points[:i], *points[i + 1 :]]
        scale = Fraction(1)
        for other in others:
            scale *= point - other
        inputs.append([*_coefficients(others), Fraction(0)])
        values.append([point**k / scale for k in range(WINDOW)])
    inputs.append(every)
    values.append([Fraction(int(k == WINDOW - 1)) for k in range(WINDOW)])
    outputs = [[*(p**i for p in points), Fraction(int(i == tile - 1))] for i in range(tile)]
    return Transforms(_matrix(inputs), _matrix(values), _matrix(outputs))


def inputs_of(tile: int) -> int:
    """Return how many inputs a tile needs each way; their square are the products of a channel."""
    return tile + WINDOW - 1


def steps(matrix: Matrix, columns: int) -> int:
    """Return the arithmetic instructions of `matrix X matrix'`, X square, by its columns first."""
    row = sum(sum(1 for v in line if v) - 1 for line in matrix)
    return row * (columns + len(matrix))


def _coefficients(roots: Sequence[Fraction]) -> list[Fraction]:
    """Return the coefficients of the product of (x - root), the constant one first."""
    found = [Fraction(1)]
    for root in roots:
        shifted = [Fraction(0), *found]
        found = [a - root * b for a, b in zip(shifted, [*found, Fraction(0)], strict=True)]
    return found


def _matrix(rows: Sequence[Sequence[Fraction]]) -> Matrix:
    return tuple(tuple(float(v) for v in row) for row in rows)

"""What the declared ranges of symbols say about a dim expression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metadef import ir
from metadef.symbolic import Dim, DimLike

_INFINITY = float("inf")
Interval = tuple[float, float]


@dataclass(frozen=True)
class Ranges:
    """The least and greatest value of each declared symbol; an undeclared one is 0 or more."""

    symbols: Mapping[str, Interval]

    @staticmethod
    def of(module: ir.Operation) -> Ranges:
        """Read `metadef.symbols` of a module."""
        if "metadef.symbols" not in module.attributes:
            return Ranges({})
        declared = ir.DictAttr(module.attributes["metadef.symbols"])
        found = {}
        for named in declared:
            bounds = ir.DictAttr(named.attr)
            low = ir.IntegerAttr(bounds["min"]).value if "min" in bounds else 0
            high = ir.IntegerAttr(bounds["max"]).value if "max" in bounds else _INFINITY
            found[named.name] = (float(low), float(high))
        return Ranges(found)

    def bounds(self, dim: DimLike) -> Interval:
        """Return a lower and an upper bound of an expression, by interval arithmetic."""
        low = high = 0.0
        for monomial, coefficient in Dim.of(dim).terms:
            term = (float(coefficient), float(coefficient))
            for atom in monomial:
                term = _multiply(term, self._atom(atom))
            low, high = low + term[0], high + term[1]
        return low, high

    def is_nonnegative(self, dim: DimLike) -> bool:
        return self.bounds(dim)[0] >= 0

    def is_negative(self, dim: DimLike) -> bool:
        return self.bounds(dim)[1] < 0

    def minimum(self, a: DimLike, b: DimLike) -> Dim:
        """Return min(a, b), decided by the ranges where they can."""
        a, b = Dim.of(a), Dim.of(b)
        if self.is_nonnegative(b - a):
            return a
        return b if self.is_nonnegative(a - b) else Dim.call("min", a, b)

    def maximum(self, a: DimLike, b: DimLike) -> Dim:
        """Return max(a, b), decided by the ranges where they can."""
        a, b = Dim.of(a), Dim.of(b)
        if self.is_nonnegative(a - b):
            return a
        return b if self.is_nonnegative(b - a) else Dim.call("max", a, b)

    def _atom(self, atom: str | tuple[str, Dim, Dim]) -> Interval:
        if isinstance(atom, str):
            return self.symbols.get(atom, (0.0, _INFINITY))
        name, a, b = atom
        (a_low, a_high), (b_low, b_high) = self.bounds(a), self.bounds(b)
        if name == "max":
            return max(a_low, b_low), max(a_high, b_high)
        if name == "min":
            return min(a_low, b_low), min(a_high, b_high)
        if name == "mod" and b_low > 0:
            return 0.0, b_high - 1
        if name == "floordiv" and b_low > 0 and a_low >= 0:
            return a_low // b_high, a_high // b_low if a_high < _INFINITY else _INFINITY
        return -_INFINITY, _INFINITY


def _multiply(a: Interval, b: Interval) -> Interval:
    products = [0.0 if 0.0 in (x, y) else x * y for x in a for y in b]
    return min(products), max(products)

"""Symbolic dims: integer expressions over named symbols, in a normal form that decides equality.

A `Dim` is a polynomial with integer coefficients; its monomials are products of atoms, and an atom
is a symbol (`B`) or a call that does not distribute (`floordiv(S, 2)`, `mod`, `max`, `min`).
`B*S`, `S + 1` and `floordiv(H - 1, 2) + 1` print and parse back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from metadef.diagnostics import MetadefError

DimLike: TypeAlias = "Dim | int | str"
Atom: TypeAlias = "str | tuple[str, Dim, Dim]"
Monomial = tuple[Atom, ...]

_CALLS: dict[str, Callable[[int, int], int]] = {
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "max": max,
    "min": min,
}


@dataclass(frozen=True)
class Dim:
    """An integer expression; `terms` maps monomials to non-zero coefficients, sorted by text."""

    terms: tuple[tuple[Monomial, int], ...]

    @staticmethod
    def of(value: DimLike) -> Dim:
        """Return `value` as a Dim: an int, an expression's text, or a Dim."""
        if isinstance(value, Dim):
            return value
        if isinstance(value, int):
            return _constant(value)
        return _parse(value)

    @staticmethod
    def call(name: str, lhs: DimLike, rhs: DimLike) -> Dim:
        """Return `name(lhs, rhs)` for floordiv, mod, max or min, folded where that is exact."""
        a, b = Dim.of(lhs), Dim.of(rhs)
        if a.is_static and b.is_static:
            if name in ("floordiv", "mod") and b.value == 0:
                raise MetadefError(f"dim expression divides by zero: {name}({a}, {b})")
            return Dim.of(_CALLS[name](a.value, b.value))
        if name in ("max", "min") and a == b:
            return a
        if name == "floordiv" and b.is_static:
            if b.value == 1:
                return a
            if all(c % b.value == 0 for _, c in a.terms):
                return _make({m: c // b.value for m, c in a.terms})
        if name == "mod" and b.is_static and all(c % b.value == 0 for _, c in a.terms):
            return Dim.of(0)
        if name in ("floordiv", "mod") and a == b:
            return Dim.of(1 if name == "floordiv" else 0)
        if name == "floordiv" and (quotient := _divide_exactly(a, b)) is not None:
            return quotient
        return _make({((name, a, b),): 1})

    @property
    def is_static(self) -> bool:
        return all(not m for m, _ in self.terms)

    @property
    def value(self) -> int:
        """The value of a static dim."""
        assert self.is_static, f"dim {self} is not static"
        return self.terms[0][1] if self.terms else 0

    @cached_property
    def symbols(self) -> frozenset[str]:
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                if isinstance(atom, str):
                    found.add(atom)
                else:
                    found |= atom[1].symbols | atom[2].symbols
        return frozenset(found)

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the value under `values`, which names every symbol of the expression."""
        total = 0
        for monomial, coefficient in self.terms:
            product = coefficient
            for atom in monomial:
                if isinstance(atom, str):
                    product *= values[atom]
                else:
                    name, a, b = atom
                    product *= _CALLS[name](a.evaluate(values), b.evaluate(values))
            total += product
        return total

    def substitute(self, values: Mapping[str, DimLike]) -> Dim:
        """Return the expression with symbols replaced by dims."""
        total = Dim.of(0)
        for monomial, coefficient in self.terms:
            product = Dim.of(coefficient)
            for atom in monomial:
                if isinstance(atom, str):
                    product = product * Dim.of(values.get(atom, atom))
                else:
                    name, a, b = atom
                    product = product * Dim.call(name, a.substitute(values), b.substitute(values))
            total = total + product
        return total

    def __add__(self, other: DimLike) -> Dim:
        sums = dict(self.terms)
        for monomial, coefficient in Dim.of(other).terms:
            sums[monomial] = sums.get(monomial, 0) + coefficient
        return _make(sums)

    def __neg__(self) -> Dim:
        return _make({m: -c for m, c in self.terms})

    def __sub__(self, other: DimLike) -> Dim:
        return self + -Dim.of(other)

    def __mul__(self, other: DimLike) -> Dim:
        products: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in Dim.of(other).terms:
                monomial = tuple(sorted(m1 + m2, key=_atom_text))
                products[monomial] = products.get(monomial, 0) + c1 * c2
        return _make(products)

    def __floordiv__(self, other: DimLike) -> Dim:
        return Dim.call("floordiv", self, other)

    def __mod__(self, other: DimLike) -> Dim:
        return Dim.call("mod", self, other)

    def __radd__(self, other: DimLike) -> Dim:
        return Dim.of(other) + self

    def __rsub__(self, other: DimLike) -> Dim:
        return Dim.of(other) - self

    def __rmul__(self, other: DimLike) -> Dim:
        return Dim.of(other) * self

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for monomial, coefficient in self.terms:
            factors = [_atom_text(a) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = (
                ("-" if coefficient < 0 else "")
                if not text
                else (" - " if coefficient < 0 else " + ")
            )
            text += sign + "*".join(factors)
        return text

    __repr__ = __str__


def same(a: DimLike, b: DimLike) -> bool | None:
    """Answer whether two dims are equal: True, False, or None for unknown.

    A constant non-zero difference is False; symbols that may take equal values give None.
    """
    if a == b:
        return True
    difference = Dim.of(a) - Dim.of(b)
    if difference.is_static:
        return difference.value == 0
    return None


def product(dims: tuple[DimLike, ...] | list[DimLike]) -> Dim:
    """Return the product of dims (1 for none)."""
    total = Dim.of(1)
    for d in dims:
        total = total * d
    return total


def ceildiv(a: DimLike, b: int) -> Dim:
    """Return the quotient rounded up, for a positive constant `b`."""
    return (Dim.of(a) + (b - 1)) // b


def _atom_text(atom: Atom) -> str:
    return atom if isinstance(atom, str) else f"{atom[0]}({atom[1]}, {atom[2]})"


def _make(terms: Mapping[Monomial, int]) -> Dim:
    kept = [(m, c) for m, c in terms.items() if c != 0]
    # Constants last, higher degree first, then by text: `B*S + S + 1`.
    kept.sort(key=lambda t: (-len(t[0]), [_atom_text(a) for a in t[0]]))
    return Dim(tuple(kept))


def _divide_exactly(a: Dim, b: Dim) -> Dim | None:
    """Return a / b when b is one monomial that divides every term of a."""
    if len(b.terms) != 1:
        return None
    divisor, factor = b.terms[0]
    quotient: dict[Monomial, int] = {}
    for monomial, coefficient in a.terms:
        rest = list(monomial)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if coefficient % factor:
            return None
        quotient[tuple(rest)] = coefficient // factor
    return _make(quotient)


@lru_cache(maxsize=4096)
def _constant(value: int) -> Dim:
    return _make({(): value})


@lru_cache(maxsize=4096)
def _parse(text: str) -> Dim:
    return _Parser(text).parse()


class _Parser:
    """Recursive descent over `+ - * // % ( )`, integers, symbols and the four calls."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = re.findall(r"\s*(//|[A-Za-z_][A-Za-z_0-9]*|\d+|\S)", text)
        self.at = 0

    def parse(self) -> Dim:
        value = self.sum()
        if self.at != len(self.tokens):
            raise self.error()
        return value

    def error(self) -> MetadefError:
        got = self.tokens[self.at] if self.at < len(self.tokens) else "the end"
        return MetadefError(
            f"dim expression '{self.text}': expected an integer, a symbol, or + - * // % and "
            f"floordiv/mod/max/min calls, got {got!r}"
        )

    def take(self, *expected: str) -> str | None:
        if self.at < len(self.tokens) and (not expected or self.tokens[self.at] in expected):
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def sum(self) -> Dim:
        value = self.term()
        while op := self.take("+", "-"):
            value = value + self.term() if op == "+" else value - self.term()
        return value

    def term(self) -> Dim:
        value = self.factor()
        while op := self.take("*", "//", "%"):
            rhs = self.factor()
            value = value * rhs if op == "*" else value // rhs if op == "//" else value % rhs
        return value

    def factor(self) -> Dim:
        if self.take("-"):
            return -self.factor()
        if self.take("("):
            value = self.sum()
            if not self.take(")"):
                raise self.error()
            return value
        token = self.take()
        if token is None:
            raise self.error()
        if token.isdigit():
            return Dim.of(int(token))
        if token in _CALLS and self.take("("):
            lhs = self.sum()
            comma = self.take(",")
            rhs = self.sum()
            if not comma or not self.take(")"):
                raise self.error()
            return Dim.call(token, lhs, rhs)
        if not token[0].isalpha() and token[0] != "_":
            self.at -= 1
            raise self.error()
        return _make({(token,): 1})

"""Symbolic sizes: from torch's sympy expressions to `Dim`, and their values from shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from metadef.diagnostics import MetadefError
from metadef.symbolic import Dim

if TYPE_CHECKING:
    import sympy
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

INT64_MAX = 2**63 - 1

#: torch traces as if no size were 0 or 1, also where it promises that the program is right for them
_TRACED_MIN = 2

Size = int | torch.SymInt


class UnsupportedExpressionError(MetadefError):
    """A size is computed in a way that a dim expression cannot say (through floats, for one)."""


@dataclass(frozen=True)
class SymbolRange:
    """The values that a symbol may take: `min <= value <= max` and `value % divisor == 0`.

    The graph was traced for values of at least `traced_min`: see `untraced_sizes`.
    """

    min: int
    max: int
    divisor: int = 1
    traced_min: int = 0


def shape_env_of(values: Iterable[Any]) -> ShapeEnv:
    """Return the shape environment that fake values of a graph belong to."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    for value in values:
        if isinstance(value, torch.SymInt):
            return value.node.shape_env
        if isinstance(value, FakeTensor) and value.fake_mode.shape_env is not None:
            return value.fake_mode.shape_env
    return ShapeEnv()


class Symbols:
    """The symbols of one graph: torch's `s77` under our names, with their ranges."""

    def __init__(
        self,
        shape_env: Any = None,
        names: Mapping[str, str] | None = None,
        promised: Mapping[sympy.Symbol, Any] | None = None,
    ) -> None:
        """Without `shape_env` there are none.

        `promised` are the ranges that torch.export vouches for, beyond those it traced with.
        """
        self._env = shape_env
        self._names = dict(names or {})
        self._promised = dict(promised or {})
        self._used: set[sympy.Symbol] = set()

    def dim(self, size: Size) -> Dim:
        """Return a size as a Dim.

        Raises:
            UnsupportedExpressionError: no dim expression says it.
        """
        if not isinstance(size, torch.SymInt):
            return Dim.of(int(size))
        return self.expression(size.node.expr)

    def expression(self, expr: sympy.Basic) -> Dim:
        """Return a sympy expression as a Dim, with symbols under our names."""
        self._used |= expr.free_symbols
        from .sympy_dims import dim_of  # sympy is tens of MiB: only for sizes that vary

        return dim_of(expr, self._names)

    def name(self, symbol: sympy.Symbol) -> str:
        return self._names.get(str(symbol), str(symbol))

    def ranges(self) -> dict[str, SymbolRange]:
        """Return the range of every symbol that a dim has mentioned so far."""
        found = {}
        for symbol in sorted(self._used, key=str):
            bounds = self._env.var_to_range.get(symbol)
            low = traced = max(_bound(bounds.lower, 0), 0) if bounds is not None else 0
            if traced == _TRACED_MIN and symbol in self._promised:
                low = max(_bound(self._promised[symbol].lower, 0), 0)
            high = _bound(bounds.upper, INT64_MAX) if bounds is not None else INT64_MAX
            found[self.name(symbol)] = SymbolRange(low, high, self._divisor(symbol), traced)
        return found

    def _divisor(self, symbol: sympy.Symbol) -> int:
        divisors = [
            int(mod.args[1])
            for mod in self._env.divisible
            if mod.args[0] == symbol and mod.args[1].is_Integer
        ]
        return math.lcm(*divisors)


@dataclass(frozen=True)
class _Step:
    """Solve `symbol` from dim `axis` of input `index`: (size - rest) / scale."""

    index: int
    axis: int
    symbol: str
    expr: Dim
    plain: bool


class SymbolBinder:
    """Finds the symbols' values from the shapes of tensors whose dims are known expressions."""

    def __init__(self, shapes: Sequence[Sequence[Dim]]) -> None:
        places = [
            (dim, index, axis)
            for index, dims in enumerate(shapes)
            for axis, dim in enumerate(dims)
            if not dim.is_static
        ]
        self.steps: list[_Step] = []
        self.checks: list[tuple[int, int, Dim]] = []
        known: set[str] = set()
        wanted = frozenset[str]().union(*(dim.symbols for dim, _, _ in places))
        progress = True
        while progress:
            progress = False
            for dim, index, axis in places:
                unknown = dim.symbols - known
                if len(unknown) == 1 and _is_linear(dim, symbol := next(iter(unknown))):
                    self.steps.append(_Step(index, axis, symbol, dim, dim == Dim.of(symbol)))
                    known.add(symbol)
                    progress = True
        solved = {(s.index, s.axis) for s in self.steps}
        for dim, index, axis in places:
            if (index, axis) not in solved and dim.symbols <= known:
                self.checks.append((index, axis, dim))
        self.unsolved = wanted - known

    def bind(self, shapes: Sequence[Sequence[int]]) -> dict[str, int]:
        """Return the symbols' values; a size that has no integer solution is rounded down."""
        values: dict[str, int] = {}
        for step in self.steps:
            size = shapes[step.index][step.axis]
            values[step.symbol] = size if step.plain else _solve(step, size, values)
        return values


def _solve(step: _Step, size: int, values: Mapping[str, int]) -> int:
    at_zero = step.expr.evaluate({**values, step.symbol: 0})
    at_one = step.expr.evaluate({**values, step.symbol: 1})
    return (size - at_zero) // (at_one - at_zero) if at_one != at_zero else 0


def _is_linear(dim: Dim, symbol: str) -> bool:
    for monomial, _ in dim.terms:
        calls = [a for a in monomial if not isinstance(a, str)]
        if any(symbol in a[1].symbols | a[2].symbols for a in calls):
            return False
        if monomial.count(symbol) > 1:
            return False
    return True


def _bound(value: Any, infinite: int) -> int:
    return int(value) if value.is_Integer else infinite

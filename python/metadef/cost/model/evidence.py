"""Level one: what was measured of this kernel, or of the same kernel in other sizes."""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from metadef.cost.table.measurement import Measurement, canonical

#: a measurement that is so much older than the newest one counts half
HALF_LIFE_DAYS = 30.0
#: a flagged one counts as a quarter of one that is not
_FLAGGED_WEIGHT = 0.25
#: neighbours are at most so far away, and the nearest one: the Euclidean norm of log2 of the ratios
#: of sizes
_FARTHEST, _FARTHEST_NEAREST = 3.0, 2.0
_NEIGHBOURS = 4
#: what a repetition of the same measurement differs by at least
_LEAST_SPREAD = 0.03
#: Neighbours that are farther apart than this, in log2 of measured / roofline, leave the answer to
#: the regression.
_MOST_APART = 0.35
#: Where neighbours answer for each other, each left out, and are farther off than this (the root
#: mean square in log2), they answer nobody: sizes change more than what the roofline counts.
_MOST_OFF = 0.2
#: how much worse an answer gets with the distance of the nearest neighbour, found by leaving out
_SPREAD_EACH_DOUBLING = 0.12


@dataclass(frozen=True)
class Evidence:
    """log2 of the ns where it is `exact`, else of measured / roofline; its spread in log2."""

    log_ns: float
    spread: float
    exact: bool
    noisy: bool


@dataclass(frozen=True)
class _Point:
    sizes: tuple[int, ...]
    log_ns: float
    residual: float
    noisy: bool
    structure: str


class Memory:
    """The measurements, by what they answer for. `residuals` are log2 of measured / roofline,
    `home` tells the memory level in which a kernel finds its data: only neighbours of the same
    level answer."""

    def __init__(
        self,
        measurements: Iterable[Measurement],
        residuals: Iterable[float],
        home: Callable[[Measurement], str],
    ) -> None:
        self._home = home
        exact: dict[tuple[object, ...], list[tuple[Measurement, float]]] = defaultdict(list)
        for m, residual in zip(measurements, residuals, strict=True):
            exact[m.place].append((m, residual))
        self._exact = {place: _weighted(found) for place, found in exact.items()}
        self._near: dict[tuple[object, ...], list[_Point]] = defaultdict(list)
        for place, found in exact.items():
            m = found[0][0]
            log_ns, noisy = self._exact[place]
            residual = sum(r for _, r in found) / len(found)
            point = _Point(m.sizes, log_ns, residual, noisy, m.structure)
            self._near[self._neighbourhood(m)].append(point)
        self._off: dict[tuple[object, ...], float] = {}

    def answer(self, about: Measurement, *, exact: bool = True) -> Evidence | None:
        """Return what is known of a kernel under a choice, or None; without `exact`, as if it had
        not been measured itself in these sizes."""
        if exact and about.place in self._exact:
            log_ns, noisy = self._exact[about.place]
            return Evidence(log_ns, math.log2(1 + _LEAST_SPREAD), True, noisy)
        place = self._neighbourhood(about)
        others = [p for p in self._near.get(place, []) if p.sizes != about.sizes]
        found = _from_neighbours(others, about.sizes)
        return None if found is None or self._how_far_off(place, others) > _MOST_OFF else found

    def _how_far_off(self, place: tuple[object, ...], points: list[_Point]) -> float:
        """Return how far off the points of a neighbourhood, or some of them, are when they answer
        for each other."""
        if len(points) < len(self._near[place]):
            return _left_out(points)
        if place not in self._off:
            self._off[place] = _left_out(points)
        return self._off[place]

    def _neighbourhood(self, m: Measurement) -> tuple[object, ...]:
        level = self._home(m)
        return m.family, canonical(m.moves), m.precision, m.threads, min(m.copies, 2), level


def _left_out(points: Sequence[_Point]) -> float:
    """Return the root mean square of the errors, in log2, with each point left out in its turn; 0
    where the others answer for fewer than two of them."""
    errors = []
    for point in points:
        others = [p for p in points if p.sizes != point.sizes]
        if (found := _from_neighbours(others, point.sizes)) is not None:
            errors.append(found.log_ns - point.residual)
    return math.sqrt(sum(e * e for e in errors) / len(errors)) if len(errors) > 1 else 0.0


def _from_neighbours(points: Iterable[_Point], sizes: tuple[int, ...]) -> Evidence | None:
    """Return what the nearest points say of other sizes, None where they are too far away."""
    apart = [(_distance(p.sizes, sizes), p) for p in points]
    near = sorted((pair for pair in apart if pair[0] <= _FARTHEST), key=lambda pair: pair[0])
    if len(near) < 2 or near[0][0] > _FARTHEST_NEAREST:
        return None
    return _interpolated(near[:_NEIGHBOURS])


def _interpolated(near: Sequence[tuple[float, _Point]]) -> Evidence | None:
    """Weight measured / roofline at the neighbours with their distance (Shepard, 1968); None where
    they are too far apart.

    With two neighbours in line it is linear interpolation in the logarithms of time and size.
    """
    total = sum(1 / d for d, _ in near)
    residual = sum(p.residual / d for d, p in near) / total
    apart = math.sqrt(sum((p.residual - residual) ** 2 / d for d, p in near) / total)
    if apart > _MOST_APART:
        return None
    spread = math.hypot(apart, math.log2(1 + _SPREAD_EACH_DOUBLING * near[0][0]))
    return Evidence(residual, spread, False, any(p.noisy for _, p in near))


def _distance(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    if len(a) != len(b):
        return math.inf
    # A size is a dim of several arguments: counted once for each pair of values.
    pairs = {(x, y) for x, y in zip(a, b, strict=True) if x != y}
    return math.sqrt(sum(math.log2(max(x, 1) / max(y, 1)) ** 2 for x, y in pairs))


def _weighted(found: Sequence[tuple[Measurement, float]]) -> tuple[float, bool]:
    """Return log2 of the ns by all measurements of one thing, and whether any was noisy."""
    newest = max(_time(m.date) for m, _ in found)
    total = weight = 0.0
    for m, _ in found:
        age = (newest - _time(m.date)).total_seconds() / 86400
        w = 0.5 ** (age / HALF_LIFE_DAYS) * (_FLAGGED_WEIGHT if m.flagged else 1.0)
        total += w * math.log2(m.best_ns)
        weight += w
    return total / weight, any(m.flagged for m, _ in found)


def _time(date: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(date)

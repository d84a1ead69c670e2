"""Level one: what was measured of this kernel, or of the same kernel in other sizes."""

from __future__ import annotations

import datetime
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metadef.cost.table.measurement import Measurement, canonical

#: a measurement that is so much older than the newest one counts half
HALF_LIFE_DAYS = 30.0
#: a flagged one counts as a quarter of one that is not
_FLAGGED_WEIGHT = 0.25
#: neighbours are at most so far away: the Euclidean norm of log2 of the ratios of sizes
_FARTHEST = 3.0
_NEIGHBOURS = 4
#: what a repetition of the same measurement differs by at least
_LEAST_SPREAD = 0.03
#: Neighbours that are sure of no more than this, in log2, leave the answer to the regression: on a
#: calibration on Zen 3, each size left out, they are off by 7 % up to here and by 23 % beyond.
_MOST_SPREAD = 0.25
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
    """The measurements, by what they answer for. `residuals` are log2 of measured /
    roofline."""

    def __init__(self, measurements: Iterable[Measurement], residuals: Iterable[float]) -> None:
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
            self._near[_neighbourhood(m)].append(point)

    def answer(self, about: Measurement, *, exact: bool = True) -> Evidence | None:
        """Return what is known of a kernel under a choice, or None; without `exact`, as if it had
        not been measured itself in these sizes."""
        if exact and about.place in self._exact:
            log_ns, noisy = self._exact[about.place]
            return Evidence(log_ns, math.log2(1 + _LEAST_SPREAD), True, noisy)
        points = self._near.get(_neighbourhood(about), [])
        apart = [(_distance(p.sizes, about.sizes), p) for p in points]
        near = sorted(((d, p) for d, p in apart if 0 < d <= _FARTHEST), key=lambda pair: pair[0])
        if len(near) < 2:
            return None
        found = _interpolated(near[:_NEIGHBOURS])
        return found if found.spread <= _MOST_SPREAD else None


def _interpolated(near: Sequence[tuple[float, _Point]]) -> Evidence:
    """Weight measured / roofline at the neighbours with their distance (Shepard, 1968).

    With two neighbours in line it is linear interpolation in the logarithms of time and size.
    """
    total = sum(1 / d for d, _ in near)
    residual = sum(p.residual / d for d, p in near) / total
    apart = math.sqrt(sum((p.residual - residual) ** 2 / d for d, p in near) / total)
    spread = math.hypot(apart, math.log2(1 + _SPREAD_EACH_DOUBLING * near[0][0]))
    return Evidence(residual, spread, False, any(p.noisy for _, p in near))


def _neighbourhood(m: Measurement) -> tuple[object, ...]:
    return m.family, canonical(m.moves), m.precision, m.threads, min(m.copies, 2)


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

"""Goes over measurements again and again: a machine may be slow for seconds, or even for minutes.

What shares its caches, its memory or its cores with others gives a kernel one time in one visit and
1.3 times as much in the next, with hardly any spread in either. Others only ever add to a time, so
the fastest visit counts, once another one agrees with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from metadef.measure.alone import Outcome

#: two visits agree where their least times are no further apart
_AGREE = 0.05

Run = TypeVar("Run")


def visited(
    runs: Sequence[Run], measure: Callable[[Run], list[Outcome]], least: int, most: int
) -> list[list[Outcome]]:
    """Return what `measure` says of the kernels of each run, by the fastest of `least` visits or,
    while the two fastest do not agree, of up to `most`. Between two visits of a run are those of
    all others.

    A kernel's `spread` is at least how far the two fastest visits are apart.
    """
    found: list[list[list[Outcome]]] = [[] for _ in runs]
    for number in range(most):
        for run, visits in zip(runs, found, strict=True):
            if number < least or any(_apart(same) > _AGREE for same in zip(*visits, strict=True)):
                visits.append(measure(run))
    return [[_fastest(same) for same in zip(*visits, strict=True)] for visits in found]


def _fastest(visits: Sequence[Outcome]) -> Outcome:
    """Return the outcome of the visit whose median is least; one that failed counts for all."""
    fastest = min(visits, key=lambda o: (o.failed is None, o.ns))
    return replace(fastest, spread=max(fastest.spread, _apart(visits)))


def _apart(visits: Sequence[Outcome]) -> float:
    """Return by how much the second fastest visit took longer than the fastest; 0 for one visit,
    and where one failed."""
    if len(visits) < 2 or any(o.failed is not None for o in visits):
        return 0.0
    first, second, *_ = sorted(o.least_ns for o in visits)
    return second / first - 1 if first > 0 else 0.0

"""Times programs side by side: short slices in turn, so that all meet the same noise.

The shorter a slice, the nearer the ratio. One model compiled five times was apart by 0.9 % (root
mean square) in 21 slices of 50 ms, and by 0.5 % in the same time in slices of 8 ms; with another
program beside it that streams memory, by 3.9 %, and by 0.2 % in slices of 5 ms.

series = interleave({"eager": lambda: model(x), "metadef": lambda: compiled(x)})
ratio(series["eager"], series["metadef"])    # over 1: metadef is faster
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from math import comb
from statistics import median
from typing import Any

_WARM_UP_CALLS = 3


@dataclass(frozen=True)
class Series:
    """The seconds of each call, in the slices in which they were measured, `at_once` at a time."""

    slices: list[list[float]] = field(default_factory=list)
    at_once: int = 1

    @property
    def calls(self) -> list[float]:
        return [seconds for part in self.slices for seconds in part]

    @property
    def median(self) -> float:
        return median(self.calls)

    def percentile(self, percent: float) -> float:
        """Return the least measured time that `percent` of the calls do not exceed."""
        ordered = sorted(self.calls)
        return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]

    @property
    def throughput(self) -> float:
        """Calls a second: each of those at once is followed by the next."""
        return self.at_once * len(self.calls) / sum(self.calls)


def interleave(
    programs: Mapping[str, Callable[[], Any]],
    *,
    rounds: int = 20,
    seconds: float = 0.0,
    slice_seconds: float = 0.1,
    at_once: int = 1,
    on_round: Callable[[int, int], None] | None = None,
    around: Callable[[str], AbstractContextManager[object]] = lambda name: nullcontext(),
) -> dict[str, Series]:
    """Call each program for a slice of time (once at least), in turn: `rounds` times, and until
    each has run for `seconds` in all.

    Within a slice `at_once` threads make calls, each one after another. Who comes first moves on by
    one each round. `on_round(done, rounds)` is called after a round; each slice of a program runs
    inside `around(name)`.
    """
    names = list(programs)
    series = {name: Series(at_once=at_once) for name in names}
    with ThreadPoolExecutor(at_once) if at_once > 1 else nullcontext() as pool:
        for program in programs.values():
            for _ in range(_WARM_UP_CALLS):
                _slice(program, 0, pool, at_once)
        ran = dict.fromkeys(names, 0.0)
        for number in count():
            if number >= rounds and min(ran.values()) >= seconds:
                break
            first = number % len(names)
            for name in names[first:] + names[:first]:
                with around(name):
                    times = _slice(programs[name], slice_seconds, pool, at_once)
                series[name].slices.append(times)
                ran[name] += sum(times) / at_once
            if on_round is not None:
                on_round(number + 1, max(rounds, number + 1))
    return series


def ratio(baseline: Series, other: Series) -> float:
    """Return how many times faster `other` is: the median over rounds of the slices' ratio."""
    return median(_slice_ratios(baseline, other))


def is_faster(baseline: Series, other: Series) -> bool:
    """Tell whether `other` is faster in more rounds than chance explains: the sign test at 5 %."""
    ratios = _slice_ratios(baseline, other)
    wins = sum(r > 1 for r in ratios)
    as_lucky = sum(comb(len(ratios), n) for n in range(wins, len(ratios) + 1))
    return as_lucky < 0.05 * 2 ** len(ratios)


def _slice_ratios(baseline: Series, other: Series) -> list[float]:
    pairs = zip(baseline.slices, other.slices, strict=True)
    return [median(a) / median(b) for a, b in pairs]


def _slice(
    program: Callable[[], Any], seconds: float, pool: ThreadPoolExecutor | None, at_once: int
) -> list[float]:
    """Return the times of the calls of a slice; those at once share the pool's threads."""
    end = time.perf_counter() + seconds
    if pool is None:
        return _calls(program, end)
    running = [pool.submit(_calls, program, end) for _ in range(at_once)]
    return [seconds for calls in running for seconds in calls.result()]


def _calls(program: Callable[[], Any], end: float) -> list[float]:
    times: list[float] = []
    while True:
        start = time.perf_counter()
        result = program()
        stop = time.perf_counter()
        times.append(stop - start)
        del result  # freeing it is not part of the call
        if stop >= end:
            return times

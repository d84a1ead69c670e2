"""Whole models measured side by side: what a call costs under one plan, and under another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import mean, median
from typing import Any

from metadef.frontend.compiled_model import CompiledModel
from metadef.measure.energy import counters, measured
from metadef.symbolic import Dim

from .objective import Cost, Objective

_WARM_UP = 3


@dataclass(frozen=True)
class Calls:
    """The ns of calls, by slice, and what else a call costs."""

    slices: list[list[int]] = field(default_factory=list)
    joules: list[float] = field(default_factory=list)
    memory_bytes: int = 0

    @property
    def all(self) -> list[int]:
        return [ns for part in self.slices for ns in part]

    def percentile(self, percent: float) -> float:
        """Return the least time that `percent` of the calls do not exceed, in ns."""
        ordered = sorted(self.all)
        return float(ordered[max(0, -int(-len(ordered) * percent // 100) - 1)])

    @property
    def throughput(self) -> float:
        """Calls a second, one after the other."""
        return 1e9 / mean(self.all)

    @property
    def cost(self) -> Cost:
        joules = sum(self.joules) / len(self.all) if self.joules else None
        return Cost(median(self.all), mean(self.all), self.memory_bytes, joules)


def measure_calls(
    models: Sequence[CompiledModel],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    rounds: int,
    seconds: float,
    symbols: Mapping[str, int],
    energy: bool = False,
) -> list[Calls]:
    """Call models that do the same for slices of `seconds`, in turn; who is first goes around.

    `symbols` has the values of the models' symbols under these arguments.
    """
    found = [Calls(memory_bytes=memory_of(model, symbols)) for model in models]
    for model in models:
        for _ in range(_WARM_UP):
            model(*args, **kwargs)
    counting = counters("cpu")[0] if energy else []
    for number in range(rounds):
        for i in range(len(models)):
            k = (number + i) % len(models)
            call = partial(models[k], *args, **kwargs)
            with measured(counting) as used:
                times = _slice(call, seconds)
            found[k].slices.append(times)
            if energy:
                found[k].joules.append(used.joules)
    return found


def score(objective: Objective, baseline: Calls, other: Calls) -> float:
    """Return what `other` costs over the baseline; of time alone, by slices side by side."""
    if objective.is_time:
        return time_ratio(baseline, other)
    return objective.score(other.cost, baseline.cost)


def time_ratio(baseline: Calls, other: Calls) -> float:
    """Return the time of `other` over the baseline's: the median over rounds of slices' ratio."""
    pairs = zip(baseline.slices, other.slices, strict=True)
    return median(median(b) / median(a) for a, b in pairs)


def _slice(call: Callable[[], Any], seconds: float) -> list[int]:
    times: list[int] = []
    end = time.perf_counter_ns() + int(seconds * 1e9)
    while True:
        start = time.perf_counter_ns()
        result = call()
        stop = time.perf_counter_ns()
        times.append(stop - start)
        del result  # freeing it is not part of the call
        if stop >= end:
            return times


def memory_of(model: CompiledModel, symbols: Mapping[str, int]) -> int:
    """Return the bytes that a compiled model takes besides inputs and outputs."""
    return sum(
        memory.weights
        + sum(Dim.of(text).evaluate(symbols) for text in (memory.planned, memory.scratch))
        for memory in model.report().memory
    )

"""Whole models measured side by side: what a call costs under one plan, and under another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from metadef.frontend.compiled_model import CompiledModel
from metadef.measure.energy import counters, measured
from metadef.measure.timing import Series, interleave, is_faster, ratio
from metadef.symbolic import Dim

from .objective import Cost, Objective

#: A gain of a model smaller than this is not taken for one.
_LEAST_GAIN = 0.005
_SLICE_SECONDS = 0.005


@dataclass(frozen=True)
class Calls:
    """The times of calls, and what else a call costs: bytes besides inputs and outputs, joules."""

    series: Series
    memory_bytes: int = 0
    joules: float | None = None

    def percentile(self, percent: float) -> float:
        """Return the least time that `percent` of the calls do not exceed, in ns."""
        return 1e9 * self.series.percentile(percent)

    @property
    def throughput(self) -> float:
        """Calls a second."""
        return self.series.throughput

    @property
    def cost(self) -> Cost:
        median_ns, mean_ns = 1e9 * self.series.median, 1e9 / self.throughput
        return Cost(median_ns, mean_ns, self.memory_bytes, self.joules)


def measure_calls(
    models: Sequence[CompiledModel],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    rounds: int,
    seconds: float,
    symbols: Mapping[str, int],
    at_once: int = 1,
    energy: bool = False,
) -> list[Calls]:
    """Call models that do the same in turn, `at_once` calls at a time: in `rounds` short slices,
    and in more until each ran for `seconds`.

    `symbols` has the values of the models' symbols under these arguments.
    """
    programs = {str(n): partial(model, *args, **kwargs) for n, model in enumerate(models)}
    counting = counters("cpu")[0] if energy else ()
    used = dict.fromkeys(programs, 0.0)

    @contextmanager
    def counted(name: str) -> Iterator[None]:
        with measured(counting) as slice_used:
            yield
        used[name] += slice_used.joules

    series = interleave(
        programs,
        rounds=rounds,
        seconds=seconds,
        slice_seconds=_SLICE_SECONDS,
        at_once=at_once,
        around=counted,
    )
    return [
        Calls(s, memory_of(model, symbols, at_once), used[name] / len(s.calls) if energy else None)
        for model, (name, s) in zip(models, series.items(), strict=True)
    ]


def score(objective: Objective, baseline: Calls, other: Calls) -> float:
    """Return what `other` costs over the baseline; of time alone, by slices side by side."""
    if objective.is_time:
        return time_ratio(baseline, other)
    return objective.score(other.cost, baseline.cost)


def is_better(objective: Objective, baseline: Calls, other: Calls) -> bool:
    """Tell whether `other` costs less by enough, and if time alone counts, not by chance."""
    is_sure = not objective.is_time or is_faster(baseline.series, other.series)
    return is_sure and score(objective, baseline, other) < 1 - _LEAST_GAIN


def time_ratio(baseline: Calls, other: Calls) -> float:
    """Return the time of `other` over the baseline's, by slices side by side."""
    return 1 / ratio(baseline.series, other.series)


def memory_of(model: CompiledModel, symbols: Mapping[str, int], at_once: int = 1) -> int:
    """Return the bytes that `at_once` calls of a compiled model take besides inputs and outputs."""
    return sum(
        memory.weights
        + at_once * sum(Dim.of(text).evaluate(symbols) for text in (memory.planned, memory.scratch))
        for memory in model.report().memory
    )

"""What a search is for: less latency, more throughput, less memory or energy, or a mixture.

objective = parse_objective("latency=0.7,memory=0.3")
objective.score(candidate, baseline)    # under 1: better than the baseline
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from metadef.diagnostics import MetadefError, near_names

#: what can be wanted, and which figure says it
GOALS: Mapping[str, str] = {
    "latency": "the median time of a call",
    "throughput": "calls a second, as many at once as there are cores for their threads",
    "memory": "bytes of weights, intermediates and scratch memory",
    "energy": "joules of a call, by the machine's counter",
}


@dataclass(frozen=True)
class Cost:
    """What a call costs: ns (median; mean for throughput), bytes of memory, joules if counted."""

    latency_ns: float
    mean_ns: float
    memory_bytes: int
    joules: float | None = None


@dataclass(frozen=True)
class Objective:
    """Goals with weights, which add up to 1."""

    weights: Mapping[str, float]

    @property
    def text(self) -> str:
        """The objective as `parse_objective` reads it."""
        if len(self.weights) == 1:
            return next(iter(self.weights))
        return ",".join(f"{goal}={weight:g}" for goal, weight in self.weights.items())

    @property
    def counts_energy(self) -> bool:
        return "energy" in self.weights

    def calls_at_once(self, cores: int, threads: int) -> int:
        """Return how many calls to measure at once: one, or for throughput what fills the cores."""
        return max(1, cores // threads) if "throughput" in self.weights else 1

    @property
    def is_time(self) -> bool:
        """Tell whether only time counts: then a kernel alone tells what is better."""
        return set(self.weights) <= {"latency", "throughput"}

    def score(self, cost: Cost, baseline: Cost) -> float:
        """Return the weighted mean of cost over the baseline's, goal by goal."""
        return sum(
            weight * _figure(goal, cost) / _figure(goal, baseline)
            for goal, weight in self.weights.items()
        )


def parse_objective(text: str) -> Objective:
    """Return the objective that `text` says: a goal, or goals with weights.

    Raises:
        MetadefError: an unknown goal, or a weight that is no number over 0.
    """
    weights: dict[str, float] = {}
    for part in text.split(","):
        goal, said, number = (piece.strip() for piece in part.partition("="))
        if goal not in GOALS:
            hint = near_names(goal, GOALS) or f"; the goals are {', '.join(GOALS)}"
            raise MetadefError(f"objective '{text}': unknown goal '{goal}'{hint}")
        if goal in weights:
            raise MetadefError(f"objective '{text}': expected '{goal}' once")
        weights[goal] = _weight(number, text) if said else 1.0
    total = sum(weights.values())
    return Objective({goal: weight / total for goal, weight in weights.items()})


def _weight(number: str, text: str) -> float:
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not 0 < weight < math.inf:
        raise MetadefError(f"objective '{text}': expected a weight over 0, got '{number}'")
    return weight


def _figure(goal: str, cost: Cost) -> float:
    if goal == "energy":
        assert cost.joules is not None, "energy was not counted"
        return max(cost.joules, 1e-12)
    return {
        "latency": cost.latency_ns,
        "throughput": cost.mean_ns,
        "memory": float(max(cost.memory_bytes, 1)),
    }[goal]

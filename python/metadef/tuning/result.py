"""What a search found: the plan, and what a call costs by default and adapted."""

from __future__ import annotations

from dataclasses import dataclass

from metadef.plan.plan import ExecutionPlan

from .calls import Calls, time_ratio
from .objective import Objective


@dataclass(frozen=True)
class KernelGain:
    """A kernel, the ns of one run by default and adapted (equal where the default stays), how often
    a call runs it, and the measured trials, of which `known` were there from an earlier search."""

    name: str
    shapes: tuple[str, ...]
    runs: int
    default_ns: float
    adapted_ns: float
    trials: int
    known: int

    @property
    def gain(self) -> float:
        """The part of the time that is saved."""
        return 1 - self.adapted_ns / self.default_ns if self.default_ns else 0.0


@dataclass(frozen=True)
class Tuned:
    """The result of a search.

    `before` and `after` are the default, measured before and after the search; `adapted` is the
    model with the plan, beside `after`. Where nothing was better, the plan has no entry of the
    search, and `adapted` is the default. `error` is how far outputs are from the default's under a
    limit of errors.
    """

    plan: ExecutionPlan
    objective: Objective
    before: Calls
    after: Calls
    adapted: Calls
    kernels: tuple[KernelGain, ...]
    trials: int
    seconds: float
    error: float | None = None

    @property
    def gain(self) -> float:
        """The part of a call's time that is saved, by slices side by side."""
        return 1 - time_ratio(self.after, self.adapted)

    @property
    def is_better(self) -> bool:
        """Tell whether the search found something."""
        return any(entry.by == "search" for entry in self.plan.entries)

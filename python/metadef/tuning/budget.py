"""How long a search may take, and how many trials it may make."""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass, field

from metadef.diagnostics import MetadefError

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}
#: below this there is no time for one trial: a kernel is compiled and measured
LEAST_SECONDS = 5.0


@dataclass(eq=False)
class Budget:
    """Seconds from now on, and measured trials."""

    seconds: float
    trials: int
    used_trials: int = 0
    _start: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self.seconds - self.elapsed)

    @property
    def is_over(self) -> bool:
        return self.left <= 0 or self.used_trials >= self.trials

    def take(self, trials: int) -> int:
        """Take so many trials, or those that are left."""
        with self._lock:
            taken = max(0, min(trials, self.trials - self.used_trials))
            self.used_trials += taken
            return taken


def parse_seconds(text: str) -> float:
    """Return the seconds of `90s`, `10m`, `1.5h` or `90`.

    Raises:
        MetadefError: no such time.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([smh]?)\s*", text)
    if match is None:
        raise MetadefError(f"budget: expected a time such as 90s, 10m or 1h, got '{text}'")
    return float(match[1]) * _UNITS[match[2] or "s"]


def check_budget(seconds: float, trials: int) -> None:
    """Check that a budget is enough for one trial.

    Raises:
        MetadefError: it is not.
    """
    if not seconds >= LEAST_SECONDS:
        raise MetadefError(
            f"budget: expected at least {LEAST_SECONDS:g} s, which one trial may take, "
            f"got {seconds:g} s"
        )
    if trials < 1:
        raise MetadefError(f"trials: expected at least 1, got {trials}")

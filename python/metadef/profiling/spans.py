"""What the clock said during a call: a span for each native part, and for each op of torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from metadef.runtime.program import Stamps


@dataclass(frozen=True)
class Span:
    """A stretch of a call.

    A native part has its `part` and the values of its symbols, and stamps [threads, 2 * steps + 1]:
    when each thread came to each step and was through with it, and the end, in ns. An op that torch
    runs has its name and source line, and stamps [1, 3] of the calling thread.
    """

    stamps: Stamps
    part: str = ""
    symbols: Mapping[str, int] = field(default_factory=dict)
    op: str = ""
    line: str = ""


@dataclass(frozen=True)
class Round:
    """One timed call, from `start` to `end` in ns of the same clock."""

    start: int
    end: int
    spans: tuple[Span, ...]

    @property
    def ns(self) -> int:
        return self.end - self.start

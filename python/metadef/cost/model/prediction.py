"""What a cost model answers."""

from __future__ import annotations

from dataclasses import dataclass

#: where an answer came from, the best kind first
MEASURED, INTERPOLATED, REGRESSION, ROOFLINE = "measured interpolated regression roofline".split()


@dataclass(frozen=True)
class Prediction:
    """The ns of one run; `source` says where they are from.

    The truth is within a factor of `1 + uncertainty` in about two of three cases. `bound` is what
    the roofline says that the time goes to: an element type's arithmetic, a memory level, or
    `launch`. `noisy` tells that some of the measurements behind it were flagged.
    """

    ns: float
    source: str
    uncertainty: float
    bound: str
    noisy: bool = False

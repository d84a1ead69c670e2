"""The roofline: the least time for an amount of work, and what sets it.

Arithmetic and each memory level overlap, so the slowest of them is the bound. Data that is found in
a level passes through all nearer ones (hierarchical roofline; Ilic, Pratas, Sousa, 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metadef.cost.work import FLOATS
from metadef.device.figures import Figures


@dataclass(frozen=True)
class Bound:
    """The least ns, and what they are spent on: an element type's arithmetic or a memory level."""

    ns: float
    by: str


def bound(
    operations: Mapping[str, int], traffic: Mapping[str, int], limits: Figures, threads: int
) -> Bound:
    """Return the bound for `operations` by element type and bytes found in each memory level.

    `traffic` has all levels, nearest first. What was not measured bounds nothing.
    """
    arithmetic = {
        element: count / rate * 1e9
        for element, count in operations.items()
        if element in FLOATS and (rate := limits.flops_of(element, threads)) is not None
    }
    least = Bound(0.0, "")
    if any(arithmetic.values()):
        slowest = max(arithmetic, key=lambda element: arithmetic[element])
        least = Bound(sum(arithmetic.values()), slowest)
    passing = sum(traffic.values())
    for level, found in traffic.items():
        bandwidth = limits.bandwidth_of(level, threads)
        if bandwidth is not None and passing / bandwidth * 1e9 > least.ns:
            least = Bound(passing / bandwidth * 1e9, level)
        passing -= found
    return least

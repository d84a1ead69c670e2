"""Where a kernel finds its data: how much else a program touches before it comes back to a buffer.

In a least-recently-used cache a buffer is still there when all that was touched since fits beside
it (stack distance; Mattson, Gecsei, Slutz, Traiger, 1970). Programs run again and again, so the
first step comes after the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """A step reads or writes `bytes` of the bytes from `start` to `end` of an address space."""

    space: str
    start: int
    end: int
    bytes: int

    def overlaps(self, other: Access) -> bool:
        return self.space == other.space and self.start < other.end and other.start < self.end


def levels_of(
    steps: Sequence[Sequence[Access]], capacities: Mapping[str, int]
) -> list[dict[str, int]]:
    """Return for each step the bytes that it finds in each memory level, nearest first.

    `capacities` are the levels' bytes in that order; the last level holds everything.
    """
    levels = list(capacities)
    caches = [(level, capacities[level]) for level in levels[:-1]]
    found = []
    for i in range(len(steps)):
        moved = dict.fromkeys(levels, 0)
        for access, footprint in _footprints(steps, i, caches[-1][1] if caches else 0):
            level = next((name for name, size in caches if footprint <= size), levels[-1])
            moved[level] += access.bytes
        found.append(moved)
    return found


def _footprints(
    steps: Sequence[Sequence[Access]], at: int, most: int
) -> list[tuple[Access, float]]:
    """Return each access of step `at` with the bytes touched since its data was last touched.

    The step's own bytes count, and not those of the step that touched it last, which may have done
    so at its end. What is over `most` is infinite.
    """
    touched: dict[tuple[str, int, int], int] = {}
    pending = list(steps[at])
    found: list[tuple[Access, float]] = []

    def touch(step: Sequence[Access]) -> int:
        for access in step:
            key = (access.space, access.start, access.end)
            touched[key] = max(access.bytes, touched.get(key, 0))
        return sum(touched.values())

    footprint = touch(steps[at])
    for distance in range(1, len(steps) + 1):
        if not pending or footprint > most:
            break
        earlier = steps[at - distance]
        here = [a for a in pending if any(a.overlaps(b) for b in earlier)]
        found += [(a, footprint) for a in here]
        pending = [a for a in pending if a not in here]
        footprint = touch(earlier)
    return [*found, *((a, float("inf")) for a in pending)]

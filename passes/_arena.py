"""Place buffers of known lifetime in one arena, with sizes that may be symbolic.

A size is c*e: an integer c and an expression e whose coefficients have no common divisor. Buffers
of one e are planned exactly, with c for the size; plans of different e are laid one after another,
since nothing is known about which is larger. So a model whose only symbol is the batch size, all
sizes c*B, is planned as well as a static one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from metadef.symbolic import Dim

ALIGNMENT = 64


@dataclass(frozen=True)
class Buffer:
    """`size` bytes, in use from step `start` to step `end`, both included."""

    size: Dim
    start: int
    end: int

    def overlaps(self, other: Buffer) -> bool:
        return self.start <= other.end and other.start <= self.end


def place(buffers: Sequence[Buffer]) -> tuple[list[Dim], Dim]:
    """Return each buffer's offset, a multiple of `ALIGNMENT`, and the size of the arena."""
    offsets = [Dim.of(0)] * len(buffers)
    classes: dict[Dim, list[tuple[int, int]]] = {}
    for i, buffer in enumerate(buffers):
        count, unit = _split(align(buffer.size))
        classes.setdefault(unit, []).append((i, count))
    base = Dim.of(0)
    for unit, members in classes.items():
        counts = [count for _, count in members]
        placed, total = _place_static([buffers[i] for i, _ in members], counts)
        for (i, _), offset in zip(members, placed, strict=True):
            offsets[i] = base + unit * offset
        base = base + unit * total
    return offsets, base


def align(size: Dim) -> Dim:
    """Return `size` rounded up to a multiple of `ALIGNMENT`."""
    if _content(size) % ALIGNMENT == 0:
        return size
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT


def _place_static(buffers: Sequence[Buffer], sizes: Sequence[int]) -> tuple[list[int], int]:
    """Place the largest first, each in the tightest gap among those that live at the same time."""
    offsets = [0] * len(buffers)
    placed: list[int] = []
    total = 0
    for i in sorted(range(len(buffers)), key=lambda i: (-sizes[i], buffers[i].start)):
        taken = sorted(
            (offsets[j], offsets[j] + sizes[j]) for j in placed if buffers[j].overlaps(buffers[i])
        )
        offsets[i] = _best_fit(taken, sizes[i])
        placed.append(i)
        total = max(total, offsets[i] + sizes[i])
    return offsets, total


def _best_fit(taken: Sequence[tuple[int, int]], size: int) -> int:
    """Return the start of the smallest gap of at least `size`, or the end of all that is taken."""
    best, best_gap, end = None, math.inf, 0
    for start, stop in taken:
        gap = start - end
        if size <= gap < best_gap:
            best, best_gap = end, gap
        end = max(end, stop)
    return end if best is None else best


def _split(size: Dim) -> tuple[int, Dim]:
    """Return (c, e) with size = c*e and e's coefficients without a common divisor."""
    content = _content(size)
    if content == 0:
        return 0, Dim.of(1)
    return content, Dim(tuple((m, c // content) for m, c in size.terms))


def _content(size: Dim) -> int:
    return math.gcd(*(c for _, c in size.terms))

"""Which steps must wait for the ones before them.

All threads run all steps in order, each its part. A barrier is needed between two steps that touch
the same memory, one of them writing; steps between two barriers run into each other freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from metadef.symbolic import Dim

from .back_graph import Arena, Buffer, Step

#: bytes; buffers in the arena start at multiples of it
ALIGNMENT = 64


@dataclass(frozen=True)
class Access:
    """What a step touches; `scratch`: it uses the scratch memory that all steps share."""

    reads: tuple[Buffer, ...]
    writes: tuple[Buffer, ...]
    scratch: bool

    @staticmethod
    def of(step: Step, scratch: bool) -> Access:
        return Access(step.reads, step.writes, scratch)


def barriers_after(accesses: Sequence[Access]) -> list[bool]:
    """Return for each step whether all threads must wait after it; never after the last."""
    waits = [False] * len(accesses)
    pending: list[Access] = []
    for i, access in enumerate(accesses):
        if any(_conflict(access, earlier) for earlier in pending):
            waits[i - 1] = True
            pending = []
        pending.append(access)
    return waits


def _conflict(later: Access, earlier: Access) -> bool:
    if later.scratch and earlier.scratch:
        return True
    return _overlap(later.writes, (*earlier.writes, *earlier.reads)) or _overlap(
        later.reads, earlier.writes
    )


def _overlap(some: Iterable[Buffer], others: Sequence[Buffer]) -> bool:
    return any(may_share_memory(a, b) for a in some for b in others)


def may_share_memory(a: Buffer, b: Buffer) -> bool:
    """Return False where no values of the symbols make the two buffers overlap."""
    if not isinstance(a, Arena) or not isinstance(b, Arena):
        return a == b
    if a.number == b.number:
        return True
    return not _ends_before(a, b) and not _ends_before(b, a)


def _ends_before(a: Arena, b: Arena) -> bool:
    if a.offset.is_static and a.size.is_static and b.offset.is_static:
        return a.offset.value + a.size.value <= b.offset.value
    gap = b.offset - a.offset
    return _is_natural(gap - a.size) or _is_natural(gap - aligned(a.size))


def _is_natural(dim: Dim) -> bool:
    """Return whether `dim` is at least 0 for all symbols: they, and what they make, are natural."""
    return all(coefficient >= 0 for _, coefficient in dim.terms)


def aligned(size: Dim) -> Dim:
    """Return `size` rounded up to a multiple of ALIGNMENT."""
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT

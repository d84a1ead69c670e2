"""Outputs that outgrow the cache are stored past it.

A plain store reads the line that it is about to overwrite, and pushes out one that may be read
again.
"""

from __future__ import annotations

from math import prod

from metadef import ir

from .schedule import Target
from .stage import Stage


def streamed(stages: list[Stage], target: Target) -> set[ir.Value]:
    """Return the outputs of a function that are large, written once, and read by nobody here.

    They are dense with whole vectors in each row, so that aligned stores stay aligned.
    """
    found = set()
    for stage in stages:
        for buffer in stage.writes:
            users = [s for s in stages if buffer in s.reads or buffer in s.writes]
            if users == [stage] and buffer not in stage.reads and _is_large_output(buffer, target):
                found.add(buffer)
    return found


def _is_large_output(buffer: ir.Value, target: Target) -> bool:
    type_ = ir.MemRefType(buffer.type)
    if not isinstance(buffer.owner, ir.Block) or not type_.has_static_shape or not type_.rank:
        return False
    if not isinstance(type_.element_type, ir.FloatType) or len(list(buffer.uses)) > 2:
        return False  # read or written otherwise; a use of its own is the flat view
    element = type_.element_type.width // 8
    whole = type_.shape[-1] * element % (target.vector_bits // 8) == 0
    return bool(whole and prod(type_.shape) * element >= target.last_cache_bytes // 2)

"""Which structured ops share a loop nest.

Three rules, in this order: a fill is the start value of the reduction that it feeds; a pointwise
op over exactly the result of a reduction is its epilogue, evaluated on the registers; and a run of
stages that hand each other rows (softmax, norms, attention) shares its row loops, so that what
they hand over stays in the first cache level.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from metadef import ir

from .access import Access
from .index_math import Index, equal
from .shared_buffers import expression, root
from .stage import Stage, remap


@dataclass(eq=False)
class Nest:
    """Stages under common loops; `common[s][c]` is stage s's dim for common loop c.

    `private` are the buffers that only this nest touches: they shrink to one tile each.
    """

    stages: list[Stage]
    common: list[list[int]]
    private: list[ir.Value]


def merge_fills(stages: list[Stage]) -> list[Stage]:
    """Fold each fill that a reduction overwrites into the reduction's start value."""
    kept: list[Stage] = []
    for stage in stages:
        for k, buffer in enumerate(stage.writes):
            if not stage.reduction_dims or not stage.accumulates(k):
                continue
            fill = _last_writer(kept, buffer)
            if fill is not None and fill_value(fill) is not None and _covers(stage, k):
                stage.init[k] = fill_value(fill)
                kept.remove(fill)
        kept.append(stage)
    return kept


def merge_epilogues(stages: list[Stage], temporaries: set[ir.Value]) -> list[Stage]:
    """Attach to each reduction the pointwise stage that reads exactly its result."""
    kept = list(stages)
    for stage in stages:
        if len(stage.outputs) != 1 or not stage.reduction_dims or not stage.accumulates(0):
            continue
        result = stage.writes[0]
        readers = [s for s in kept if result in s.reads]
        if result not in temporaries or len(readers) != 1 or readers[0].epilogue is not None:
            continue
        reader = readers[0]
        mapping = _epilogue_dims(stage, reader, result)
        if mapping is None or result in reader.writes:
            continue
        at = kept.index(reader)
        mapped = remap(reader, mapping, stage.extents, len(stage.extents))
        slot = [k for k, v in enumerate(_input_buffers(reader)) if v == result][0]
        merged = replace(
            stage,
            epilogue=mapped,
            epilogue_input=slot,
            reads=stage.reads + [v for v in reader.reads if v != result],
            writes=reader.writes,
        )
        kept[at] = merged
        kept.remove(stage)
    return kept


def form_nests(stages: list[Stage], temporaries: set[ir.Value]) -> list[Nest]:
    """Group runs of stages into nests by the rows that they hand over."""
    nests: list[Nest] = []
    run: list[Stage] = []
    for stage in stages:
        if run and _common_loops([*run, stage]):
            run.append(stage)
            continue
        if run:
            nests.append(_nest(run, stages, temporaries))
        run = [stage]
    if run:
        nests.append(_nest(run, stages, temporaries))
    return nests


def _nest(run: list[Stage], stages: list[Stage], temporaries: set[ir.Value]) -> Nest:
    common = _common_loops(run) if len(run) > 1 else [[d] for d in run[0].parallel_dims]
    outside = [s for s in stages if s not in run]
    private = [
        b
        for b in dict.fromkeys(b for s in run for b in s.writes)
        if b in temporaries and not any(b in s.reads or b in s.writes for s in outside)
    ]
    by_stage = [[loop[s] for loop in common] for s in range(len(run))]
    return Nest(list(run), by_stage, private if len(run) > 1 else [])


def _common_loops(run: list[Stage]) -> list[list[int]]:
    """Return the loops that all stages share: for each, every stage's dim, or [] if none.

    A dim of one stage is a dim of another when a buffer that both touch is indexed by it at the
    same place. Each buffer handed over must be indexed by every common loop in all its accesses.
    """
    # Candidate loops start from the first stage's parallel dims.
    first = run[0]
    loops: list[list[int | None]] = [
        [d] + [None] * (len(run) - 1) for d in first.parallel_dims if first.extents[d] != 1
    ]
    for s in range(1, len(run)):
        shared = False
        votes: list[dict[int, int] | None] = [None] * len(loops)
        if any(_aliases(run[t], run[s]) for t in range(s)):
            return []
        for t in range(s):
            for mine, theirs in _handed_over(run[t], run[s]):
                shared = True
                if mine.nonlinear or theirs.nonlinear:
                    return []  # panels are filled for all rows, not row by row
                for c, loop in enumerate(loops):
                    source = loop[t]
                    match = (
                        None
                        if source is None
                        else _matching_dim(theirs, source, mine, run[s].extents)
                    )
                    if match is None or run[s].reduction[match]:
                        votes[c] = {}
                    elif votes[c] is None:
                        votes[c] = {match: 1}
                    elif match not in (votes[c] or {}):
                        votes[c] = {}
        if not shared:
            return []
        for c, vote in enumerate(votes):
            loops[c][s] = next(iter(vote)) if vote else None
        loops = [loop for loop in loops if loop[s] is not None]
    result = [[d for d in loop if d is not None] for loop in loops]
    return [
        loop
        for loop in result
        if all(
            _same_extent(run[0].extents[loop[0]], run[s].extents[loop[s]]) for s in range(len(run))
        )
    ]


def _handed_over(earlier: Stage, later: Stage) -> list[tuple[Access, Access]]:
    """Return (later's access, earlier's access) for each buffer that one of them writes."""
    pairs = []
    for theirs, buffer in _written(earlier):
        pairs += [(mine, theirs) for mine, b in _read(later) + _written(later) if b == buffer]
    for theirs, buffer in _read(earlier):
        pairs += [(mine, theirs) for mine, b in _written(later) if b == buffer]
    return pairs


def _matching_dim(theirs: Access, dim: int, mine: Access, extents: Sequence[Index]) -> int | None:
    """Return the dim of `mine` that moves it as `dim` moves `theirs`, alone."""
    stride = theirs.strides[dim]
    if theirs.is_nonlinear(dim) or (isinstance(stride, int) and stride == 0):
        return None
    found = [
        d
        for d, s in enumerate(mine.strides)
        if extents[d] != 1 and equal(s, stride) and not mine.is_nonlinear(d)
    ]
    return found[0] if len(found) == 1 else None


def _read(stage: Stage) -> list[tuple[Access, ir.Value]]:
    buffers = _input_buffers(stage)
    pairs = [(x, b) for x, b in zip(stage.inputs, buffers, strict=True) if isinstance(x, Access)]
    if stage.epilogue:
        extra = _read(stage.epilogue)
        held = stage.epilogue.inputs[stage.epilogue_input]
        pairs += [(x, b) for x, b in extra if x is not held]
    return [(x, b) for x, b in pairs if b is not None]


def _written(stage: Stage) -> list[tuple[Access, ir.Value]]:
    outputs = stage.epilogue.outputs if stage.epilogue else stage.outputs
    return list(zip(outputs, stage.writes, strict=True))


def _input_buffers(stage: Stage) -> list[ir.Value | None]:
    reads = iter(stage.reads)
    return [next(reads) if isinstance(x, Access) else None for x in stage.inputs]


def _same_extent(a: Index, b: Index) -> bool:
    """Tell whether two extents are surely equal: as values, or as expressions of the symbols."""
    if equal(a, b):
        return True
    if isinstance(a, int) or isinstance(b, int):
        return False
    known = expression(a), expression(b)
    return known[0] is not None and known[0] == known[1]


def _aliases(earlier: Stage, later: Stage) -> bool:
    """Tell whether two stages meet in memory through different views, one of them writing."""
    for mine, theirs in ((later, earlier), (earlier, later)):
        written = {root(b): b for b in theirs.writes}
        for b in (*mine.reads, *mine.writes):
            if root(b) in written and written[root(b)] != b:
                return True
    return False


def _last_writer(stages: list[Stage], buffer: ir.Value) -> Stage | None:
    """Return the last stage touching `buffer`, when it only writes it."""
    for stage in reversed(stages):
        if buffer in stage.reads:
            return None
        if buffer in stage.writes:
            return stage
    return None


def fill_value(stage: Stage) -> ir.Value | None:
    """Return the scalar that a stage fills its one output with, or None if it does more."""
    if stage.reduction_dims or len(stage.outputs) != 1 or stage.epilogue is not None:
        return None
    operations = list(stage.body.operations)
    if len(operations) != 1:
        return None
    yielded = operations[0].operands[0]
    for k, operand in enumerate(stage.inputs):
        if yielded == stage.body.arguments[k]:
            return operand if isinstance(operand, ir.Value) else None
    defined_inside = isinstance(yielded, ir.BlockArgument) and yielded.owner == stage.body
    return None if defined_inside else yielded


def _covers(stage: Stage, output: int) -> bool:
    """Tell whether the stage writes every element of its output (all parallel dims move it)."""
    return all(stage.outputs[output].moves(d) for d in stage.parallel_dims)


def _epilogue_dims(stage: Stage, reader: Stage, result: ir.Value) -> dict[int, int] | None:
    """Return reader's dims in terms of stage's, when reader is pointwise over `result` exactly."""
    if reader.reduction_dims or len(reader.extents) != len(stage.parallel_dims):
        return None
    reads = [x for x, b in _read(reader) if b == result]
    if len(reads) != 1 or not isinstance(reads[0], Access):
        return None
    if reads[0].nonlinear:
        return None
    # Dims of one element move nothing: any of them stands for any other.
    spare = [e for e, extent in enumerate(reader.extents) if extent == 1]
    mapping: dict[int, int] = {}
    for d in stage.parallel_dims:
        match = [
            e
            for e, extent in enumerate(reader.extents)
            if e not in mapping
            and equal(reads[0].strides[e], stage.outputs[0].strides[d])
            and _same_extent(extent, stage.extents[d])
        ]
        if stage.extents[d] == 1:
            match = [e for e in spare if e not in mapping]
        if not match:
            return None
        mapping[match[0]] = d
    return mapping

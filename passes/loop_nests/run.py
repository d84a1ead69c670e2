"""A run of structured ops as nests: what is merged, packed and grouped before loops are built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from metadef import ir

from .access import FlatBuffer, flatten
from .grouping import Nest, form_nests, merge_epilogues, merge_fills
from .packing import pack_operand
from .padding import merge_padding
from .schedule import Target, choose
from .shared_buffers import root
from .stage import Stage, collapse, parse_stage
from .streaming import streamed
from .window_tile import window_tile


@dataclass(eq=False)
class Run:
    """A run of structured ops as nests; `flat` gives the flat view of a buffer, and those in `past`
    are stored past the cache."""

    ops: list[ir.OpView]
    nests: list[Nest]
    flat: Callable[[ir.Value], FlatBuffer]
    past: frozenset[ir.Value]

    @staticmethod
    def of(ops: list[ir.OpView], target: Target, *, packs: bool) -> Run:
        """Form the nests of a run at the insertion point; `packs`: with copies into panels."""
        flats: dict[ir.Value, FlatBuffer] = {}

        def flat(buffer: ir.Value) -> FlatBuffer:
            if buffer not in flats:
                owner = buffer.owner
                at = (
                    ir.InsertionPoint.at_block_begin(owner)
                    if isinstance(owner, ir.Block)
                    else _after(owner.operation)
                )
                with at:
                    flats[buffer] = flatten(buffer)
            return flats[buffer]

        if packs:
            ops = _with_packing(ops, flat, target)
        stages = [parse_stage(op, flat) for op in ops]
        temporaries = _temporaries(stages, {op.operation for op in ops})
        stages = merge_padding(merge_fills(stages), partial(_as_good, target))
        stages = merge_epilogues(stages, temporaries)
        past = frozenset(flat(b).flat for b in streamed(stages, target))
        nests = form_nests(stages, temporaries)
        for nest in nests:
            if len(nest.stages) == 1:
                nest.stages[0] = collapse(nest.stages[0])
                nest.common[0] = nest.stages[0].parallel_dims
        return Run(ops, nests, flat, past)


def _as_good(target: Target, padded: Stage, bounded: Stage) -> bool:
    """Tell whether a stage without padding has the lanes that it has with it, or has its windows
    in tiles."""
    if window_tile(bounded, target) is not None:
        return True
    schedules = [choose(s, s.extents, target) for s in (padded, bounded)]
    return all(s.lanes == schedules[0].lanes and not s.over_reduction for s in schedules)


def _with_packing(
    run: list[ir.OpView], flat: Callable[[ir.Value], FlatBuffer], target: Target
) -> list[ir.OpView]:
    """Return the run with a copy into panels for each product that wants one.

    A copy comes right after what it reads is written, or first: between two ops that hand each
    other rows it would keep them from sharing loops.
    """
    result: list[ir.OpView] = []
    for op in run:
        with op.location:
            copy = pack_operand(op, flat, target)
        if copy is not None:
            source = root(copy.operands[0])
            writers = [i for i, other in enumerate(result) if source in _written(other)]
            result.insert(writers[-1] + 1 if writers else 0, copy)
        result.append(op)
    return result


def _written(op: ir.OpView) -> set[ir.Value]:
    """Return the buffers that a structured op writes, not the views of them."""
    return {root(buffer) for buffer in op.outputs}


def _temporaries(stages: list[Stage], run: set[ir.Operation]) -> set[ir.Value]:
    """Return the allocations that only structured ops of this run touch."""
    found: set[ir.Value] = set()
    for stage in stages:
        for buffer in stage.writes:
            owner = buffer.owner
            if isinstance(owner, ir.Block):
                continue
            if owner.operation.name not in ("memref.alloc", "memref.view"):
                continue
            users = [u.owner.operation for u in buffer.uses]
            if all(
                u in run or u.name in ("memref.dealloc", "memref.reinterpret_cast", "memref.dim")
                for u in users
            ):
                found.add(buffer)
    return found


def _after(op: ir.Operation) -> ir.InsertionPoint:
    """Return the place right after an op."""
    return ir.InsertionPoint.after(op)

"""How large the boxes of a nest are, and in which order threads walk them."""

from __future__ import annotations

from . import transposed
from .blocking import Blocking
from .grouping import Nest
from .index_math import Index
from .schedule import Schedule, Target
from .stage import Stage

# Elements of a pointwise box: enough to hide a task's few nanoseconds of bookkeeping.
_POINTWISE_BOX = 4096
# Rows of a box of fused stages with a contraction, in register blocks.
_BOX_BLOCKS = 4
# Vectors of a box of fused stages whose lanes run along a common loop.
_BOX_VECTORS = 4


def box_sizes(
    nest: Nest, schedules: list[Schedule], blocking: Blocking | None
) -> list[tuple[Index, int]]:
    """Return (extent, box size) for each common loop."""
    boxes: list[tuple[Index, int]] = []
    single = len(nest.stages) == 1
    first = nest.stages[0]
    tiles = {} if single else _tiles(nest, schedules)
    for c, dim in enumerate(nest.common[0]):
        extent = first.extents[dim]
        if blocking is not None:
            size = blocking.box.get(dim, 1)
        else:
            size = _single_box(first, schedules[0], dim) if single else tiles.get(c, 1)
        boxes.append((extent, min(size, extent) if isinstance(extent, int) else size))
    return [(extent, max(size, 1)) for extent, size in boxes]


def _single_box(stage: Stage, schedule: Schedule, dim: int) -> int:
    """Return how many turns of a loop of an unfused stage make a box: a register block's."""
    extent = stage.extents[dim]
    if schedule.row_dim is not None and not stage.reduction_dims:
        return transposed.BOX if dim in (schedule.lanes, schedule.row_dim) else 1
    if dim == schedule.lanes:
        if stage.reduction_dims:
            return schedule.panel
        if isinstance(extent, int) and extent <= 2 * _POINTWISE_BOX:
            others = [stage.extents[d] for d in stage.parallel_dims if d != dim]
            if any(not isinstance(e, int) or e > 1 for e in others):
                return extent
        return _POINTWISE_BOX
    if dim == schedule.row_dim:
        return schedule.rows
    return 1


def _tiles(nest: Nest, schedules: list[Schedule]) -> dict[int, int]:
    """Return the common loops that boxes of fused stages hold several turns of, and how many.

    Lanes along a common loop want whole vectors, and rows of a product whole register blocks.
    """
    tiles: dict[int, int] = {}
    for common, schedule in zip(nest.common, schedules, strict=True):
        if schedule.lanes in common:
            tiles.setdefault(common.index(schedule.lanes), _BOX_VECTORS * schedule.width)
            break
    blocks = 1 if tiles else _BOX_BLOCKS
    for common, stage, schedule in zip(nest.common, nest.stages, schedules, strict=True):
        product = stage.reduction_dims and not schedule.over_reduction
        if product and schedule.row_dim in common:
            tiles.setdefault(common.index(schedule.row_dim), blocks * schedule.rows)
            break
    return tiles


def task_order(
    nest: Nest, schedules: list[Schedule], target: Target, blocking: Blocking | None
) -> list[int]:
    """Return the common loops from the outermost task digit to the innermost.

    Of a product the rows go outside: those of a box stay in the second cache level while the
    panels pass by.
    """
    order = list(range(len(nest.common[0])))
    lanes = schedules[0].lanes
    if blocking is not None and lanes in nest.common[0]:
        c = nest.common[0].index(lanes)
        order.remove(c)
        order.append(c)
    return order

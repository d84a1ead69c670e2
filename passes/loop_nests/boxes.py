"""How large the boxes of a nest are, and in which order threads walk them."""

from __future__ import annotations

from . import transposed
from .access import Access
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


def box_sizes(nest: Nest, schedules: list[Schedule]) -> list[tuple[Index, int]]:
    """Return (extent, box size) for each common loop."""
    boxes: list[tuple[Index, int]] = []
    single = len(nest.stages) == 1
    first = nest.stages[0]
    tiles = {} if single else _tiles(nest, schedules)
    for c, dim in enumerate(nest.common[0]):
        extent = first.extents[dim]
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


def task_order(nest: Nest, schedules: list[Schedule], target: Target) -> list[int]:
    """Return the common loops from the outermost task digit to the innermost.

    Panels go outside when what the lanes read does not fit the second cache level, so that
    each panel is read once; inside otherwise, so that the rows are.
    """
    order = list(range(len(nest.common[0])))
    stage, schedule = nest.stages[0], schedules[0]
    if len(nest.stages) > 1 or schedule.lanes not in nest.common[0]:
        return order
    c = nest.common[0].index(schedule.lanes)
    if stage.reduction_dims and _panel_bytes(stage, schedule) > target.l2_bytes // 2:
        order.remove(c)
        order.insert(0, c)
    return order


def _panel_bytes(stage: Stage, schedule: Schedule) -> int:
    """Return the bytes that inputs moving with the lanes and not with the rows hold."""
    total = 0
    for x in stage.inputs:
        if not isinstance(x, Access) or schedule.lanes is None or not x.moves(schedule.lanes):
            continue
        if schedule.row_dim is not None and x.moves(schedule.row_dim):
            continue
        size = 4
        for d in range(len(stage.extents)):
            extent = stage.extents[d]
            if x.moves(d):
                size *= extent if isinstance(extent, int) else 64
        total += size
    return total

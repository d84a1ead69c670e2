"""How large the boxes of a nest are, and in which order threads walk them."""

from __future__ import annotations

from math import prod

from . import transposed
from .blocking import Blocking
from .grouping import Nest
from .index_math import Index, ceildiv, maximum, mul
from .schedule import Schedule
from .sharing import box_units, known
from .stage import Stage

# Elements of a pointwise box: enough to hide a task's few nanoseconds of bookkeeping.
_POINTWISE_BOX = 4096
# Steps of an unfused reduction's box.
_REDUCED_BOX = 1 << 16
# Boxes of such a reduction for each core, so that no core waits long for another.
_TASKS_PER_CORE = 4
# Rows of a box of fused stages with a contraction, in register blocks.
_BOX_BLOCKS = 4
# Vectors of a box of fused stages whose lanes run along a common loop.
_BOX_VECTORS = 4


def box_sizes(
    nest: Nest,
    schedules: list[Schedule],
    blocking: Blocking | None,
    cores: int,
    wanted: tuple[int, ...] | None = None,
) -> list[tuple[Index, int]]:
    """Return (extent, box size) for each common loop: the `wanted` sizes, or those of the rules."""
    if wanted is not None:
        extents = [nest.stages[0].extents[dim] for dim in nest.common[0]]
        return list(zip(extents, wanted, strict=True))
    boxes: list[tuple[Index, int]] = []
    single = len(nest.stages) == 1
    first = nest.stages[0]
    tiles = {} if single else _tiles(nest, schedules)
    alone = _reduced_box if first.reduction_dims else _pointwise_boxes
    found = alone(first, schedules[0], cores) if single and blocking is None else {}
    for c, dim in enumerate(nest.common[0]):
        extent = first.extents[dim]
        if blocking is not None:
            size = blocking.box.get(dim, 1)
        elif not single:
            size = tiles.get(c, 1)
        else:
            size = found.get(dim, 1)
        boxes.append((extent, min(size, extent) if isinstance(extent, int) else size))
    return [(extent, max(size, 1)) for extent, size in boxes]


def even_sizes(
    nest: Nest, schedules: list[Schedule], boxes: list[tuple[Index, int]], counts: list[Index]
) -> list[Index]:
    """Return the sizes of boxes that are even where an extent is not known: 64 rows in boxes of at
    most 60 are 36 and 28 of them, in register blocks of 6, and not 60 and 4."""
    units = [1] * len(boxes)
    for common, schedule in zip(nest.common, schedules, strict=True):
        for d, unit in ((schedule.lanes, schedule.panel), (schedule.row_dim, schedule.rows)):
            if d in common:
                units[common.index(d)] = max(units[common.index(d)], unit)
    sizes: list[Index] = []
    for (extent, size), count, unit in zip(boxes, counts, units, strict=True):
        if isinstance(extent, int) or size % unit or size == unit:
            sizes.append(size)
        else:
            sizes.append(mul(ceildiv(ceildiv(extent, unit), maximum(count, 1)), unit))
    return sizes


def tail_units(
    nest: Nest, schedules: list[Schedule], boxes: list[tuple[Index, int]]
) -> list[int | None]:
    """Return for each common loop the turns that all boxes, the last one too, have a multiple of,
    where the same code does for any number of them; else None.

    The schedules of fused stages are made for the size of their box.
    """
    if len(nest.stages) > 1:
        return [None] * len(boxes)
    (stage,), (schedule,) = nest.stages, schedules
    return [
        _tail_unit(stage, schedule, dim, size, extent % size) if isinstance(extent, int) else None
        for dim, (extent, size) in zip(nest.common[0], boxes, strict=True)
    ]


def _tail_unit(stage: Stage, schedule: Schedule, dim: int, size: int, tail: int) -> int | None:
    """Return the unit of boxes of `size` turns of a loop, and of one of `tail`."""
    rows, panel = schedule.rows, schedule.panel
    if dim == schedule.lanes:
        return None if size % panel or tail % panel else panel
    if dim != schedule.row_dim:
        return 1
    if not size % rows and not tail % rows:
        return rows
    windows = any(w.output == dim for w in stage.inside)
    even = stage.reduction_dims and is_even(size, rows) and is_even(tail, rows)
    return 1 if even and not windows else None


def is_even(total: int, rows: int) -> bool:
    """Tell whether `total` rows are blocks of `rows` and of one less, the fewest there can be."""
    blocks = -(-total // rows)
    return blocks * rows - total <= blocks


def _pointwise_boxes(stage: Stage, schedule: Schedule, cores: int) -> dict[int, int]:
    """Return a box of an unfused pointwise stage: lanes, and where those are few the dims around
    them, the innermost first, as long as there are enough boxes for the cores."""
    box = {d: _pointwise_box(stage, schedule, d) for d in stage.parallel_dims}
    lanes = schedule.lanes
    if schedule.row_dim is not None or lanes is None or box[lanes] != stage.extents[lanes]:
        return box
    outer = [d for d in reversed(stage.parallel_dims) if d != lanes]
    total = prod(known(stage.extents[d]) for d in outer)
    most = min(_POINTWISE_BOX // max(box[lanes], 1), total // (_TASKS_PER_CORE * cores))
    for d in outer:
        extent = stage.extents[d]
        if not isinstance(extent, int) or most < 2:
            break
        box[d] = max(n for n in range(1, min(extent, most) + 1) if extent % n == 0)
        most //= box[d]
        if box[d] < extent:
            break
    return box


def _pointwise_box(stage: Stage, schedule: Schedule, dim: int) -> int:
    """Return how many turns of a loop of an unfused pointwise stage make a box."""
    extent = stage.extents[dim]
    if schedule.row_dim is not None:
        return transposed.BOX if dim in (schedule.lanes, schedule.row_dim) else 1
    if dim == schedule.lanes:
        if isinstance(extent, int) and extent <= 2 * _POINTWISE_BOX:
            others = [stage.extents[d] for d in stage.parallel_dims if d != dim]
            if any(not isinstance(e, int) or e > 1 for e in others):
                return extent
        return _POINTWISE_BOX
    return 1


def _reduced_box(stage: Stage, schedule: Schedule, cores: int) -> dict[int, int]:
    """Return a box of an unfused reduction that reuses nothing: a depthwise convolution, a pool.

    Register blocks side by side in memory, the innermost dims first, until the work hides a task's
    bookkeeping or there are just enough boxes for the cores.
    """
    units = box_units(stage, schedule)
    box = {d: units.get(d, 1) for d in stage.parallel_dims if d in units}
    depth = prod(known(stage.extents[d]) for d in stage.reduction_dims)
    total = prod(-(-known(stage.extents[d]) // units.get(d, 1)) for d in stage.parallel_dims)
    work = depth * prod(box.values())
    most = min(_REDUCED_BOX // work, total // (_TASKS_PER_CORE * cores))
    for d in reversed(stage.parallel_dims):
        extent, unit = stage.extents[d], units.get(d, 1)
        if not isinstance(extent, int) or most < 2:
            break
        blocks = -(-extent // unit)
        turns = max(n for n in range(1, blocks + 1) if blocks % n == 0 and n <= most)
        box[d] = unit * turns
        most //= turns
        if turns < blocks:
            break
    return box


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


def task_order(nest: Nest, schedules: list[Schedule], blocking: Blocking | None) -> list[int]:
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

"""How the boxes of a product are shared out: cut until no core waits long for another.

Each core takes a run of boxes, the panels of a row of boxes one after another. Smaller boxes are
shared out better, but more rows of boxes read the panels again, and more panels of boxes the rows.
"""

from __future__ import annotations

from collections.abc import Iterator

from .index_math import Index
from .schedule import Schedule
from .stage import Stage

#: register blocks of rows in a box, at most
MOST_ROW_BLOCKS = 24
# What a panel costs the rows of a box that it comes to, and rows the panels, before they are in a
# near cache: so many rows or panels could be worked on.
_PANEL_COST = 1.0
_ROWS_COST = 0.25
# So little of the time is not worth smaller boxes.
_LITTLE = 1 / 64


def shared_out(stage: Stage, schedule: Schedule, box: dict[int, int], cores: int) -> dict[int, int]:
    """Return the turns of each dim in boxes cut so that all cores are through soonest."""
    best, cost = box, _cost(stage, schedule, box, cores)
    while cost > (1 + _LITTLE) * _cost(stage, schedule, best, 1):
        tried = [(_cost(stage, schedule, b, cores), b) for b in _cuts(stage, schedule, best, cores)]
        least = min(tried, key=lambda pair: pair[0], default=None)
        if least is None or least[0] >= cost:
            break
        cost, best = least
    return best


def _cuts(
    stage: Stage, schedule: Schedule, box: dict[int, int], cores: int
) -> Iterator[dict[int, int]]:
    """Yield the boxes that are smaller in one dim, until there is one more for each core."""
    units = box_units(stage, schedule)
    for d, size in box.items():
        extent, unit = stage.extents[d], schedule.panel if d == schedule.lanes else 1
        if not isinstance(extent, int) or size <= units.get(d, 1):
            continue
        turns = -(-extent // unit)
        boxes = -(-extent // size)
        for count in range(boxes + 1, boxes + cores + 1):
            smaller = unit * -(-turns // count)
            if units.get(d, 1) <= smaller < size:
                yield box | {d: smaller}


def _cost(stage: Stage, schedule: Schedule, box: dict[int, int], cores: int) -> float:
    """Return the time of the busiest core, times the number of cores; 1 is all the work alone."""
    dims = [d for d in stage.parallel_dims if d != schedule.lanes]
    rows = panels = 1
    work = []
    for d in [*dims, *(d for d in stage.parallel_dims if d == schedule.lanes)]:
        extent, size = known(stage.extents[d]), box.get(d, 1)
        if d != schedule.lanes:
            rows *= size
            work.append((size, extent))
        else:
            panels = -(-size // schedule.panel)
            width = schedule.width
            work.append((-(-size // width), -(-extent // width)))
    total = tasks = 1
    for size, extent in work:
        total, tasks = total * extent, tasks * -(-extent // size)
    shares = [_of_first(work, k * tasks // cores) for k in range(cores + 1)]
    busiest = max(b - a for a, b in zip(shares, shares[1:], strict=False))
    return busiest * cores / max(total, 1) * (1 + _PANEL_COST / rows + _ROWS_COST / panels)


def _of_first(work: list[tuple[int, int]], count: int) -> int:
    """Return the work of the first `count` boxes; `work` has the size and extent of each dim."""
    inner = [1]
    whole = [1]
    for size, extent in reversed(work):
        inner.append(inner[-1] * -(-extent // size))
        whole.append(whole[-1] * extent)
    done, sizes = 0, 1
    for n, (size, extent) in enumerate(work):
        behind = len(work) - n - 1
        at, count = divmod(count, max(inner[behind], 1))
        done += sizes * min(at * size, extent) * whole[behind]
        sizes *= max(0, min(size, extent - at * size))
    return done


def box_units(stage: Stage, schedule: Schedule) -> dict[int | None, int]:
    """Return the turns that a box has a multiple of.

    Rows that are windows stay together if they are not too many: then it is known which of them
    are at an edge of the input.
    """
    rows = schedule.rows
    if in_one_box(stage, schedule):
        extent = stage.extents[schedule.row_dim or 0]
        rows *= -(-known(extent) // rows)
    return {schedule.lanes: schedule.panel, schedule.row_dim: rows}


def in_one_box(stage: Stage, schedule: Schedule) -> bool:
    """Tell whether the rows are windows that a box has all of."""
    extent = 0 if schedule.row_dim is None else stage.extents[schedule.row_dim]
    windows = any(w.output == schedule.row_dim for w in stage.inside)
    return windows and isinstance(extent, int) and extent <= MOST_ROW_BLOCKS * schedule.rows


def known(extent: Index) -> int:
    """Return an extent, or 1 where it is not known when the code is built."""
    return extent if isinstance(extent, int) else 1


def even(extent: Index, most: int) -> int:
    """Return how many of `extent` turns, at most `most`, make even parts of it."""
    if not isinstance(extent, int):
        return most
    return -(-extent // -(-extent // most))

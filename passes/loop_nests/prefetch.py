"""Fetch a product's next panel while the rows of a box pass by the present one.

Otherwise the first rows to meet a panel wait for memory, and the others for nothing. Each register
block fetches its share, a few elements further on at each step of the reduction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metadef import ir

from .access import Access
from .index_math import Index, add, ceildiv, mul, sub, value
from .memory import Point
from .schedule import Schedule
from .stage import Stage

# Into the second cache level: the first holds what is worked on.
_LOCALITY = 2
# From so many panels on, waiting for rows once counts little.
_FEW_PANELS = 8
_LONG_ROW_BYTES = 2048


def fetch(buffer: ir.Value, address: Index, locality: int = _LOCALITY) -> None:
    """Build the prefetch of an element to be read; a locality of 3 is the first cache level."""
    ir.memref.prefetch(
        buffer, [value(address)], is_write=False, locality_hint=locality, is_data_cache=True
    )


@dataclass(frozen=True)
class Prefetch:
    """The fetches of the panel after the present one.

    `blocks` gives for each dim of rows the blocks in its turns, the innermost first, some of which
    may be smaller; `step` is the dim of the reduction that walks a panel.
    """

    panel: Access
    lanes: int
    width: int
    step: int
    blocks: tuple[tuple[int, int, Index], ...]
    bounds: tuple[tuple[Index, Index], ...]

    def of_block(self, block: Point) -> Callable[[Point], None]:
        """Return what builds the fetch at a point of the reduction of the block at `block`."""
        number: Index = 0
        count: Index = 1
        for d, turns, blocks in self.blocks:
            base, _ = self.bounds[d]
            number = add(number, mul(ceildiv(sub(block[d], base), turns), count))
            count = mul(count, blocks)
        base, depth = self.bounds[self.step]
        share = ceildiv(self.width, count)
        corner = list(block)
        corner[self.lanes] = add(block[self.lanes], self.width)
        corner[self.step] = base
        start = add(self.panel.address(tuple(corner)), mul(number, mul(depth, share)))

        def fetch_share(at: Point) -> None:
            fetch(self.panel.buffer, add(start, mul(sub(at[self.step], base), share)))

        return fetch_share


@dataclass(frozen=True)
class NextRows:
    """The fetches of the rows of the next register block, which lie behind the present ones."""

    rows: Access
    row_dim: int
    step: int
    count: int
    bounds: tuple[tuple[Index, Index], ...]

    def of_block(self, block: Point) -> Callable[[Point], None]:
        """Return what builds the fetch at a point of the reduction of the block at `block`."""
        base, _ = self.bounds[self.step]
        corner = list(block)
        corner[self.row_dim] = add(block[self.row_dim], self.count)
        corner[self.step] = base
        start = self.rows.address(tuple(corner))

        def fetch_share(at: Point) -> None:
            fetch(self.rows.buffer, add(start, mul(sub(at[self.step], base), self.count)))

        return fetch_share


def next_rows(
    stage: Stage, schedule: Schedule, bounds: list[tuple[Index, Index]]
) -> NextRows | None:
    """Return the fetches of a product whose rows meet few panels, and so wait for memory often."""
    lanes, row_dim = schedule.lanes, schedule.row_dim
    assert lanes is not None and row_dim is not None
    rows = [x for x in stage.inputs if isinstance(x, Access) and not x.moves(lanes)]
    if len(rows) != 1 or len(stage.reduction_dims) != 1 or rows[0].nonlinear:
        return None
    (step,) = stage.reduction_dims
    depth = stage.extents[step]
    dense = rows[0].strides[step] == 1 and rows[0].strides[row_dim] == depth
    # Short rows are one stream, which the processor fetches by itself.
    if not isinstance(depth, int) or depth * rows[0].element.width // 8 < _LONG_ROW_BYTES:
        return None
    extent = stage.extents[lanes]
    few = isinstance(extent, int) and extent <= _FEW_PANELS * schedule.panel
    if not dense or not few or schedule.rows == 1:
        return None
    return NextRows(rows[0], row_dim, step, schedule.rows, tuple(bounds))


def next_box(stages: list[Stage], common: list[list[int]], c: int, size: Index) -> dict[int, Index]:
    """Return, for the last of `stages` under common loops, its inputs to be fetched for the next
    box along common loop `c`: how far away it reads there.

    Those are what an earlier stage of the nest reads too: it would wait for memory, and this one,
    which finds everything in the cache, has the time to fetch.
    """
    *earlier, stage = stages
    far: dict[int, Index] = {}
    for k, x in enumerate(stage.inputs):
        if not isinstance(x, Access) or x.nonlinear:
            continue
        distance = mul(x.strides[common[-1][c]], size)
        if isinstance(distance, int) and distance == 0:
            continue
        readers = [s for s in earlier if any(_same_buffer(x, y) for y in s.inputs)]
        written = any(_same_buffer(x, y) for s in stages for y in _written(s))
        if len(readers) == 1 and not written:
            far[k] = distance
    return far


def _same_buffer(x: Access, y: object) -> bool:
    return isinstance(y, Access) and y.buffer == x.buffer


def _written(stage: Stage) -> list[Access]:
    return stage.outputs + (stage.epilogue.outputs if stage.epilogue else [])


def next_panel(
    stage: Stage, schedule: Schedule, box: dict[int, int], bounds: list[tuple[Index, Index]]
) -> Prefetch | None:
    """Return the fetches for a box of a product; None where its panels are not packed.

    Nor where each panel meets one register block only: then nothing waits but for the panel.
    """
    lanes, row_dim = schedule.lanes, schedule.row_dim
    assert lanes is not None and row_dim is not None
    panels = [x for x in stage.inputs if isinstance(x, Access) and x.is_nonlinear(lanes)]
    step = stage.reduction_dims[-1]
    if len(panels) != 1 or panels[0].strides[step] != schedule.panel:
        return None
    blocks = []
    total: Index = 1
    for d in [row_dim, *(d for d in reversed(list(box)) if d not in (row_dim, lanes))]:
        turns = schedule.rows if d == row_dim else 1
        extent = bounds[d][1]
        if isinstance(stage.extents[d], int):
            # The last box may have fewer: then it fetches less.
            extent = box.get(d, 1)
        blocks.append((d, turns, ceildiv(extent, turns)))
        total = mul(total, blocks[-1][2])
    if total == 1:
        return None
    return Prefetch(panels[0], lanes, schedule.panel, step, tuple(blocks), tuple(bounds))

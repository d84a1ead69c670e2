"""Cache blocking of products: boxes of rows and panels, and chunks of the reduction.

A product streams a panel of one operand past blocks of rows of the other. The rows of a box stay
in the second cache level while the panels pass by, the next panel with them. Where the reduction is
too long for that, it is cut in chunks, between which the sums are in memory (Goto and van de Geijn
2008, "Anatomy of high-performance matrix multiplication"): all panels of a chunk pass by the rows
before the next chunk, so that rows are read once, and panels once for each box.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from metadef import ir
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .access import Access
from .index_math import Index, mul, sub
from .schedule import Schedule, Target, combiners
from .sharing import MOST_ROW_BLOCKS, even, in_one_box, known, shared_out
from .stage import Stage

# So few in the cache are not worth the loads of a panel.
_FEW_ROW_BLOCKS = 4
# A row stride from which the rows of a box are on other pages and fall on few sets of a cache.
_FAR_BYTES = 2048


@dataclass(frozen=True)
class Blocking:
    """Turns of each parallel dim in a box, and of the reduction dims in a chunk (none: whole).

    `copied` is the input whose rows are far apart, so that a box copies its chunk of them. Between
    chunks the sums are in the output, with `sums_apart` in memory of the box's own.
    """

    box: dict[int, int]
    chunks: dict[int, int] = field(default_factory=dict)
    copied: int | None = None
    sums_apart: bool = False


def block_for_caches(
    stage: Stage, schedule: Schedule, target: Target, wanted: KernelChoice = BY_RULE
) -> Blocking | None:
    """Return the blocking of a product; None for what reuses no operand along its rows.

    `legality` has seen to it that what is `wanted` can be.
    """
    lanes, row_dim = schedule.lanes, schedule.row_dim
    if lanes is None or row_dim is None or schedule.over_reduction or not stage.reduction_dims:
        return None
    if len(stage.outputs) != 1 or not stage.accumulates(0):
        return None
    panels = [x for x in _inputs(stage) if x.moves(lanes) and not x.moves(row_dim)]
    rows = [x for x in _inputs(stage) if x.moves(row_dim) and not x.moves(lanes)]
    if not panels or not rows:
        return None
    row_dims = _row_dims(stage, schedule, panels)
    row_bytes = sum(_bytes(x) for x in rows)
    chunks: dict[int, int] = {}
    resident = _resident_rows(stage, row_bytes, chunks, target.l2_bytes // 2)
    passing = _row_blocks(stage, schedule, row_dims)
    few = resident < _FEW_ROW_BLOCKS * schedule.rows and passing > MOST_ROW_BLOCKS
    step = schedule.panel * sum(_bytes(x) for x in panels)
    share = _panel_share(stage, target)
    large = _depth(stage, chunks) * step > target.l2_bytes // share and passing > 1
    cut = (few or large) and is_sum(stage)
    if wanted.chunks is not None:
        sizes = zip(stage.reduction_dims, wanted.chunks, strict=True)
        chunks = {d: size for d, size in sizes if size}
        cut = bool(chunks)
    elif cut:
        chunks = _chunks(stage, schedule, target.l2_bytes // (2 * share) // step)
    if cut:
        resident = _resident_rows(stage, row_bytes, chunks, target.l2_bytes // 4)
    if wanted.tiles is not None:
        box = dict(zip(stage.parallel_dims, wanted.tiles, strict=True))
        box[lanes] = schedule.panel * -(-box[lanes] // schedule.panel)
    else:
        most = min(max(resident, schedule.rows), MOST_ROW_BLOCKS * schedule.rows)
        box = _rows_of_box(stage, schedule, row_dims, most)
        box[lanes] = _lanes_of_box(stage, schedule, box, target) if chunks else schedule.panel
        box = shared_out(stage, schedule, box, target.cores)
    apart = bool(chunks) and stage.epilogue is not None
    copied = rows_to_copy(stage, rows, chunks)
    if copied is not None and not (
        _pays(stage, row_dim, rows[0], chunks) if wanted.copied is None else wanted.copied
    ):
        copied = None
    return Blocking(box, chunks, copied, apart)


def _resident_rows(stage: Stage, row_bytes: int, chunks: dict[int, int], most: int) -> int:
    """Return how many rows, of `row_bytes` at one index of the reduction, fill `most` bytes."""
    return most // (_depth(stage, chunks) * row_bytes)


def _lanes_of_box(stage: Stage, schedule: Schedule, box: dict[int, int], target: Target) -> int:
    """Return the lanes whose sums, between chunks, leave the last cache level to the panels."""
    rows = prod(box.get(d, 1) for d in stage.parallel_dims if d != schedule.lanes)
    panel = rows * schedule.panel * _bytes(stage.outputs[0])
    most = max(1, target.last_cache_bytes // 16 // panel)
    extent = stage.extents[schedule.lanes or 0]
    panels = -(-extent // schedule.panel) if isinstance(extent, int) else most
    return schedule.panel * even(panels, most)


def is_sum(stage: Stage) -> bool:
    """Tell whether a stage of one output adds up floats."""
    (fold,) = combiners(stage)
    return fold is not None and fold.op == "arith.addf"


def _inputs(stage: Stage) -> list[Access]:
    return [x for x in stage.inputs if isinstance(x, Access)]


def _row_dims(stage: Stage, schedule: Schedule, panels: list[Access]) -> list[int]:
    """Return the dims whose turns all read the same panels: the rows' own, then the inner ones."""
    others = [
        d for d in reversed(stage.parallel_dims) if d not in (schedule.row_dim, schedule.lanes)
    ]
    assert schedule.row_dim is not None
    return [schedule.row_dim] + [d for d in others if not any(x.moves(d) for x in panels)]


def _row_blocks(stage: Stage, schedule: Schedule, row_dims: list[int]) -> int:
    """Return the register blocks of rows that read the same panels (unknown: many)."""
    total = 1
    for d in row_dims:
        extent = stage.extents[d]
        if not isinstance(extent, int):
            return MOST_ROW_BLOCKS + 1
        total *= -(-extent // schedule.rows) if d == schedule.row_dim else extent
    return total


def _panel_share(stage: Stage, target: Target) -> int:
    """Return which part of the second cache level a panel may take, as 1 / n; a chunk is half that.

    An eighth is read mostly from the first level. A core without multiply-adds issues several
    instructions for each product and does not wait for the second, and a chunk's ends cost it more;
    windows, whose taps read the same rows, gain by a first level that holds those beside the panel.
    """
    windows = len(stage.reduction_dims) > 1
    return 8 if target.fuses_products or windows else 2


def _chunks(stage: Stage, schedule: Schedule, most: int) -> dict[int, int]:
    """Split the reduction in chunks of about `most` indices."""
    most = max(1, most)
    chunks: dict[int, int] = {}
    kept = whole_taps(stage, schedule)
    inside = prod(known(stage.extents[d]) for d in kept)
    for d in reversed(stage.reduction_dims):
        extent = stage.extents[d]
        if d in kept:
            continue
        if chunks:
            chunks[d] = 1
        elif isinstance(extent, int) and inside * extent <= most:
            inside *= extent
        else:
            chunks[d] = _about(extent, max(1, most // inside))
    return dict(reversed(chunks.items()))


def whole_taps(stage: Stage, schedule: Schedule) -> set[int]:
    """Return the taps along the rows, which stay in one chunk: which of them are at an edge is
    known row by row."""
    return {w.tap for w in stage.inside if w.output == schedule.row_dim}


def _about(extent: Index, size: int) -> int:
    """Return what parts of `extent` nearest to `size` are long, if they are even."""
    if not isinstance(extent, int):
        return size
    return -(-extent // max(1, round(extent / size)))


def _depth(stage: Stage, chunks: dict[int, int]) -> int:
    """Return about how many indices of the reduction a chunk has."""
    depth = 1
    for d in stage.reduction_dims:
        extent = chunks.get(d, stage.extents[d])
        depth *= extent if isinstance(extent, int) else 1024
    return depth


def _rows_of_box(
    stage: Stage, schedule: Schedule, row_dims: list[int], most: int
) -> dict[int, int]:
    """Return how many turns of the dims of rows make boxes of about `most` rows, as even as can be.

    A smaller box at the end would wait for as many panels as the others, for fewer rows.
    """
    box = {}
    for d in row_dims:
        extent = stage.extents[d]
        if not isinstance(extent, int):
            unit = schedule.rows if d == schedule.row_dim else 1
            box[d] = unit * max(1, most // unit)
            break
        whole = d == schedule.row_dim and in_one_box(stage, schedule)
        box[d] = extent if whole else even(extent, most)
        most //= max(extent, 1)
        if most < 2:
            break
    return box


def rows_to_copy(stage: Stage, rows: list[Access], chunks: dict[int, int]) -> int | None:
    """Return the input of rows that a box can copy: the only one, dense along the reduction."""
    if not chunks or len(rows) != 1 or rows[0].nonlinear:
        return None
    x = rows[0]
    inner = x.strides[stage.reduction_dims[-1]]
    dense = isinstance(inner, int) and inner == 1
    known = all(isinstance(chunks.get(d, stage.extents[d]), int) for d in stage.reduction_dims)
    return stage.inputs.index(x) if dense and known else None


def _pays(stage: Stage, row_dim: int, x: Access, chunks: dict[int, int]) -> bool:
    """Tell whether rows are worth a copy: far apart, and not one after another without gaps."""
    if not _is_far(x, row_dim):
        return False
    row = prod(e for d, e in _turns_of_chunk(stage, chunks).items() if x.moves(d))
    stride = x.strides[row_dim]
    return not isinstance(stride, int) or stride >= 2 * row


def _turns_of_chunk(stage: Stage, chunks: dict[int, int]) -> dict[int, int]:
    turns = {}
    for d in stage.reduction_dims:
        extent = chunks.get(d, stage.extents[d])
        assert isinstance(extent, int), "a chunk of known size"
        turns[d] = extent
    return turns


def _is_far(x: Access, dim: int) -> bool:
    stride = x.strides[dim]
    return not isinstance(stride, int) or stride * _bytes(x) >= _FAR_BYTES


def sums_size(stage: Stage, box: dict[int, int]) -> int:
    """Return the elements of the sums of one box."""
    return prod(box.get(d, 1) for d in stage.parallel_dims)


def sums_in(
    stage: Stage, box: dict[int, int], bounds: list[tuple[Index, Index]], tile: ir.Value, lanes: int
) -> Access:
    """Return the access of the sums of the box at `bounds` in `tile`, lanes side by side."""
    dims = [*(d for d in stage.parallel_dims if d != lanes), lanes]
    return _tiled(stage.outputs[0], dims, box, bounds, tile)


def rows_size(stage: Stage, blocking: Blocking) -> int:
    """Return the elements of the copied rows of one box and chunk."""
    return prod(_rows_turns(stage, blocking).values())


def rows_in(
    stage: Stage, blocking: Blocking, bounds: list[tuple[Index, Index]], tile: ir.Value
) -> tuple[Access, list[int]]:
    """Return the access of the copied rows in `tile` for the chunk at `bounds`, and its dims."""
    assert blocking.copied is not None
    x = stage.inputs[blocking.copied]
    assert isinstance(x, Access)
    turns = _rows_turns(stage, blocking)
    return _tiled(x, list(turns), turns, bounds, tile), list(turns)


def _rows_turns(stage: Stage, blocking: Blocking) -> dict[int, int]:
    assert blocking.copied is not None
    x = stage.inputs[blocking.copied]
    assert isinstance(x, Access)
    turns = {d: blocking.box.get(d, 1) for d in stage.parallel_dims if x.moves(d)}
    return turns | _turns_of_chunk(stage, blocking.chunks)


def _tiled(
    x: Access,
    dims: list[int],
    turns: dict[int, int],
    bounds: list[tuple[Index, Index]],
    tile: ir.Value,
) -> Access:
    """Return the access of a dense tile with the axes `dims`, the last one innermost."""
    strides: list[Index] = [0] * len(x.strides)
    offset: Index = 0
    size = 1
    for d in reversed(dims):
        strides[d] = size
        size *= turns.get(d, 1)
        offset = sub(offset, mul(bounds[d][0], strides[d]))
    return Access(tile, x.element, offset, tuple(strides))


def _bytes(x: Access) -> int:
    return max(1, int(x.element.width) // 8)

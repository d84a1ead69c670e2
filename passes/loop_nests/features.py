"""What a choice makes of a nest, in numbers that mean something: what a cost model learns from."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from metadef.plan.kernel_choice import KernelChoice

from .access import Access
from .alternatives import Alternatives
from .body import instructions
from .decisions import decide
from .footprint import LINE, footprint
from .index_math import Index
from .schedule import Schedule
from .shared_buffers import expression
from .stage import Stage
from .tasks import PARTS

#: how many turns a loop has whose extent nobody can tell
_UNKNOWN_EXTENT = 64


def nest_features(
    alternatives: Alternatives, choice: KernelChoice, symbols: Mapping[str, int]
) -> dict[str, float]:
    """Return the features of a nest with a legal choice, with values for the symbols of its
    extents.

    `lane_use` and `row_use` are the parts of vectors and of register blocks that are not tails;
    `*_bytes` are of one box, with its ratio to the cache that it should stay in beside it.
    """
    nest, target = alternatives.nest, alternatives.target
    found = decide(nest, target, choice)
    stage, block = found.main, found.block
    extents = [_number(e, symbols) for e in stage.extents]
    common = nest.common[nest.stages.index(stage)]
    turns = {d: min(size, extents[d]) for d, (_, size) in zip(common, found.boxes, strict=True)}
    turns |= {d: extents[d] for d in stage.parallel_dims if d not in turns}
    boxes = prod(-(-extents[d] // max(turns[d], 1)) for d in common)
    chunks = found.blocking.chunks if found.blocking is not None else {}
    depth = prod(extents[d] for d in stage.reduction_dims)
    summed = {d: min(chunks.get(d, extents[d]), extents[d]) for d in stage.reduction_dims}
    chunk = prod(summed.values())
    rows, panels = _operands(stage, block)
    row_turns = prod(turns[d] for d in stage.parallel_dims if d != block.lanes)
    panel_bytes = sum(map(_bytes, panels)) * block.panel * chunk
    rows_bytes = sum(map(_bytes, rows)) * row_turns * chunk
    sums = block.rows * block.vectors * block.chains
    in_block = {d: min(n, _step(block, d)) for d, n in turns.items()} | summed
    registers = sums + (block.vectors if block.row_dim is not None else 0) + 2
    return {
        "points": prod(extents),
        "stages": len(nest.stages),
        "has_products": float(stage.sums_products),
        "body_ops": instructions(stage.body),
        "epilogue_ops": instructions(stage.epilogue.body) if stage.epilogue else 0,
        "vector_elements": block.width // block.chains,
        "over_reduction": float(block.over_reduction),
        "lane_use": _use(extents, block.lanes, block.width),
        "panel_use": _use(extents, block.lanes, block.panel),
        "row_use": _use(extents, block.row_dim, block.rows),
        "rows": block.rows,
        "vectors": block.vectors * block.chains,
        "registers": registers,
        "register_fill": registers / target.vector_registers,
        "loads_per_product": (block.rows + block.vectors) / sums if stage.reduction_dims else 1,
        "far_lanes": _far_lanes(stage, block),
        "reduction_depth": depth,
        "chunk_depth": chunk,
        "chunks": prod(-(-extents[d] // max(size, 1)) for d, size in chunks.items()),
        "copied": float(found.blocking is not None and found.blocking.copied is not None),
        "boxes": boxes,
        "boxes_per_core": boxes / target.cores,
        "box_imbalance": -(-boxes // target.cores) * target.cores / max(boxes, 1),
        "box_points": prod(turns[d] for d in stage.parallel_dims) * depth,
        "box_rows": row_turns,
        "panel_bytes": panel_bytes,
        "panel_per_l1": panel_bytes / target.l1_bytes,
        "rows_bytes": rows_bytes,
        "rows_per_l2": rows_bytes / target.l2_bytes,
        **_memory(stage, in_block, "block", symbols),
        **_memory(stage, turns | summed, "box", symbols),
        "windows": float(found.windows is not None),
        "parts": choice.parts or PARTS,
    }


def _step(block: Schedule, dim: int) -> int:
    """Return how many turns of a parallel dim's loop a block takes."""
    if dim == block.lanes:
        return block.panel
    return block.rows if dim == block.row_dim else 1


def _memory(
    stage: Stage, turns: Mapping[int, int], part: str, symbols: Mapping[str, int]
) -> dict[str, float]:
    """Return what a part of a nest touches of all operands together."""
    found = [footprint(x, turns, lambda i: _number(i, symbols)) for x in stage.accesses()]
    lines = sum(x.lines for x in found)
    return {
        f"{part}_lines": lines,
        f"{part}_line_use": min(1.0, sum(x.bytes for x in found) / max(lines * LINE, 1)),
        f"{part}_pages": sum(x.pages for x in found),
        f"{part}_runs_per_set": max((x.runs_per_set for x in found), default=1.0),
    }


def _number(extent: Index, symbols: Mapping[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    dim = expression(extent)
    if dim is None:
        return _UNKNOWN_EXTENT
    return dim.evaluate({name: symbols.get(name, _UNKNOWN_EXTENT) for name in dim.symbols})


def _use(extents: list[int], dim: int | None, unit: int) -> float:
    """Return which part of whole units a dim fills."""
    if dim is None or not extents[dim]:
        return 1.0
    return extents[dim] / (-(-extents[dim] // unit) * unit)


def _operands(stage: Stage, block: Schedule) -> tuple[list[Access], list[Access]]:
    """Return the inputs that move with rows alone, and with lanes alone."""
    inputs = [x for x in stage.inputs if isinstance(x, Access)]
    lanes, row_dim = block.lanes, block.row_dim
    if lanes is None or row_dim is None:
        return [], [x for x in inputs if lanes is not None and x.moves(lanes)]
    rows = [x for x in inputs if x.moves(row_dim) and not x.moves(lanes)]
    return rows, [x for x in inputs if x.moves(lanes) and not x.moves(row_dim)]


def _far_lanes(stage: Stage, block: Schedule) -> int:
    """Count the operands whose lanes are not side by side in memory."""
    if block.lanes is None:
        return 0
    strides = [x.lane_stride(block.lanes, block.width) for x in stage.accesses()]
    return sum(not (isinstance(s, int) and s in (0, 1)) for s in strides)


def _bytes(x: Access) -> int:
    return max(1, int(x.element.width) // 8)

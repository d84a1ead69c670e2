"""Buffers that stay inside a nest shrink to one tile for each thread."""

from __future__ import annotations

from dataclasses import dataclass, replace

from metadef import ir

from .access import Access
from .grouping import Nest
from .index_math import Index, add, mul, sub, value
from .shared_buffers import PRIVATE
from .stage import Stage

# Private tiles up to this size live on the stack, larger ones on the heap.
_STACK_BYTES = 64 * 1024


@dataclass(frozen=True)
class PrivateTile:
    """A thread's own tile: a rank-1 memref, and the allocation to free if it is on the heap."""

    flat: ir.Value
    heap: ir.Value | None


def private_tiles(
    nest: Nest, boxes: list[tuple[Index, int]], entry: ir.Block
) -> dict[ir.Value, PrivateTile]:
    """Give each private buffer a tile of this thread's own."""
    tiles: dict[ir.Value, PrivateTile] = {}
    for buffer in nest.private:
        for s, stage in enumerate(nest.stages):
            outputs = stage.epilogue.outputs if stage.epilogue else stage.outputs
            for x, written in zip(outputs, stage.writes, strict=True):
                if written == buffer and buffer not in tiles:
                    tiles[buffer] = _tile(stage, x, nest.common[s], boxes, entry)
    return tiles


def _tile(
    stage: Stage,
    x: Access,
    common: list[int],
    boxes: list[tuple[Index, int]],
    entry: ir.Block,
) -> PrivateTile:
    """Return memory for one box of what `x` writes, laid out by the buffer's own strides."""
    size: Index = 1
    for d, stride in enumerate(x.strides):
        extent = boxes[common.index(d)][1] if d in common else stage.extents[d]
        size = add(size, mul(sub(extent, 1), stride))
    return private_tile(x.element, size, entry)


def private_tile(element: ir.Type, size: Index, entry: ir.Block) -> PrivateTile:
    """Return memory for `size` elements: a small known size on the stack, the rest elsewhere."""
    dynamic = ir.ShapedType.get_dynamic_size()
    if isinstance(size, int) and size * 8 <= _STACK_BYTES:
        with ir.InsertionPoint.at_block_begin(entry):
            type_ = ir.MemRefType.get([size], element)
            stack = ir.memref.alloca(type_, [], [], alignment=64)
            flat = ir.memref.cast(ir.MemRefType.get([dynamic], element), stack)
        return PrivateTile(flat, None)
    heap = ir.memref.alloc(ir.MemRefType.get([dynamic], element), [value(size)], [], alignment=64)
    heap.owner.attributes[PRIVATE] = ir.UnitAttr.get()
    return PrivateTile(heap, heap)


def localise(
    stage: Stage, common: list[int], bases: list[Index], tiles: dict[ir.Value, PrivateTile]
) -> Stage:
    """Point a stage's accesses at this thread's tiles; `tiles` goes by the flat buffer replaced."""

    def local(x: Access) -> Access:
        tile = tiles.get(x.buffer)
        if tile is None:
            return x
        offset: Index = 0
        for base, dim in zip(bases, common, strict=True):
            offset = sub(offset, mul(base, x.strides[dim]))
        return replace(x, buffer=tile.flat, offset=offset)

    return replace(
        stage,
        inputs=[local(x) if isinstance(x, Access) else x for x in stage.inputs],
        outputs=[local(x) for x in stage.outputs],
        epilogue=localise(stage.epilogue, common, bases, tiles) if stage.epilogue else None,
    )

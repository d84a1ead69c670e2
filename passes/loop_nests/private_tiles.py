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
    return {
        buffer: private_tile(x.element, _size(steps, boxes), entry)
        for buffer, x, steps in _written(nest)
    }


def private_bytes(nest: Nest, boxes: list[tuple[Index, int]]) -> int:
    """Return the bytes of those tiles whose size is known when the code is built."""
    total = 0
    for _, x, steps in _written(nest):
        if all(isinstance(n, int) for step in steps for n in step[1:]):
            size = _size(steps, boxes)
            total += int(x.element.width) // 8 * (size if isinstance(size, int) else 0)
    return total


_Step = tuple[int | None, Index, Index]
"""A loop of a stage that writes a tile: the common loop that it is, its extent, its stride."""


def _written(nest: Nest) -> list[tuple[ir.Value, Access, list[_Step]]]:
    """Return for each private buffer how the first stage that writes it walks it."""
    found: dict[ir.Value, tuple[ir.Value, Access, list[_Step]]] = {}
    for stage, common in zip(nest.stages, nest.common, strict=True):
        outputs = stage.epilogue.outputs if stage.epilogue else stage.outputs
        for x, written in zip(outputs, stage.writes, strict=True):
            if written in nest.private and written not in found:
                steps: list[_Step] = [
                    (common.index(d) if d in common else None, stage.extents[d], stride)
                    for d, stride in enumerate(x.strides)
                ]
                found[written] = written, x, steps
    return [found[buffer] for buffer in nest.private if buffer in found]


def _size(steps: list[_Step], boxes: list[tuple[Index, int]]) -> Index:
    """Return the elements of one box of a buffer, laid out by the buffer's own strides."""
    size: Index = 1
    for loop, extent, stride in steps:
        turns = extent if loop is None else boxes[loop][1]
        size = add(size, mul(sub(turns, 1), stride))
    return size


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

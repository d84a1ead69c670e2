"""Writes of many slices of one tensor, said as writes to memory before one-shot bufferization.

Each `tensor.insert_slice` of a concat takes the tensor that the one before made. Bufferization
compares, for each write of such a chain, every other with every read: the time grows with the cube
of the length. Where nobody else sees the tensors between, there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from metadef import ir

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_EXTRACT, _INSERT = "tensor.extract_slice", "tensor.insert_slice"


@dataclass(frozen=True)
class _Write:
    """An `insert_slice`, and the `extract_slice` of the same place, if what it writes has one."""

    insert: ir.Operation
    extract: ir.Operation | None

    @property
    def first(self) -> ir.Operation:
        return self.extract or self.insert


class _Place(NamedTuple):
    """A slice: static bounds (`_DYNAMIC` where an operand gives one), those operands, its type."""

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    operands: tuple[ir.Value, ...]
    type: ir.Type


def write_slices_to_memory(module: ir.Operation) -> None:
    """Rewrite each chain of writes to slices of one tensor.

    %s = tensor.extract_slice %t[0] [4] [1]        %m = bufferization.to_buffer %t
    %x = linalg.generic .. outs(%s)                %v = memref.subview %m[0] [4] [1]
    %u = tensor.insert_slice %x into %t[0] ..  =>  %s = bufferization.to_tensor %v restrict writable
    .. the same with %u at [4]                     %x = linalg.generic .. outs(%s)
                                                   bufferization.materialize_in_destination %x in %v
                                                   .. the same at [4]
                                                   %r = bufferization.to_tensor %m restrict writable
    """
    chains = []
    seen: set[ir.Value] = set()
    for op in ir.operations(module):
        if op.operation.name == _INSERT and op.operation.operands[1] not in seen:
            chains.append(_chain(op.operation))
            seen.update(write.insert.result for write in chains[-1])
    for chain in chains:
        if len(chain) > 1:
            _rewrite(chain)


def _chain(insert: ir.Operation | None) -> list[_Write]:
    """Return the writes from `insert` on such that only the next one sees the result of each.

    Slices may be read ahead of the writes before theirs, which must be to other places: an op that
    writes several slices has them all from the tensor before.
    """
    chain: list[_Write] = []
    whole = 0
    ahead: dict[_Place, ir.Operation] = {}
    while insert is not None and _into(insert, insert.operands[1]):
        users = [use.owner.operation for use in insert.operands[1].uses]
        readers = [user for user in users if user != insert]
        if any(r.name != _EXTRACT or r.block != insert.block for r in readers):
            break
        found = {_place(r, r.result): r for r in readers}
        if len(found) < len(readers):
            break
        ahead |= found
        place = _place(insert, insert.operands[0])
        extract = ahead.pop(place, None)
        if not all(_apart(place, other) for other in ahead):
            break
        chain.append(_Write(insert, extract))
        whole = whole if ahead else len(chain)
        users = [use.owner.operation for use in insert.result.uses]
        insert = next((u for u in users if u.name == _INSERT and _into(u, insert.result)), None)
    return chain[:whole]


def _into(insert: ir.Operation, target: ir.Value) -> bool:
    source = ir.RankedTensorType(insert.operands[0].type)
    return (
        insert.operands[1] == target
        and insert.operands[0] != target
        and source.rank == ir.RankedTensorType(target.type).rank
    )


def _place(op: ir.Operation, part: ir.Value) -> _Place:
    """Return what tells which elements of a tensor a slice is, and its type."""
    first = 1 if op.name == _EXTRACT else 2
    offsets, sizes, strides = (
        tuple(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"]))
        for name in ("offsets", "sizes", "strides")
    )
    return _Place(offsets, sizes, strides, tuple(op.operands)[first:], part.type)


def _apart(a: _Place, b: _Place) -> bool:
    """Say whether two slices share no element for certain."""
    return any(_apart_along(*along) for along in zip(*a[:3], *b[:3], strict=True))


def _apart_along(
    start: int, size: int, step: int, other: int, other_size: int, other_step: int
) -> bool:
    if _DYNAMIC in (start, step, other, other_step):
        return False
    if step == other_step and (start - other) % step:
        return True
    if start > other:
        start, other, size = other, start, other_size
        step = other_step
    return size != _DYNAMIC and start + (size - 1) * step < other


def _rewrite(chain: Sequence[_Write]) -> None:
    tensor, last = chain[0].insert.operands[1], chain[-1].insert
    type_ = ir.RankedTensorType(tensor.type)
    owner = tensor.owner
    start = (
        ir.InsertionPoint.at_block_begin(owner)
        if isinstance(owner, ir.Block)
        else ir.InsertionPoint.after(owner)
    )
    with start, chain[0].first.location:
        memory = ir.bufferization.to_buffer(
            ir.MemRefType.get(type_.shape, type_.element_type), tensor
        )
    for write in chain:
        with ir.InsertionPoint(write.first), write.first.location:
            place = _subview(memory, write.insert)
            if write.extract is not None:
                write.extract.result.replace_all_uses_with(
                    _tensor_in(place, write.extract.result.type)
                )
        with ir.InsertionPoint(write.insert), write.insert.location:
            ir.bufferization.materialize_in_destination(
                None, write.insert.operands[0], place, restrict=True, writable=True
            )
    with ir.InsertionPoint(last), last.location:
        last.result.replace_all_uses_with(_tensor_in(memory, tensor.type))
    for write in reversed(chain):
        if write.extract is not None:
            write.extract.erase()
        write.insert.erase()


def _tensor_in(memory: ir.Value, type_: ir.Type) -> ir.Value:
    return ir.bufferization.to_tensor(type_, memory, restrict=True, writable=True)


def _subview(memory: ir.Value, insert: ir.Operation) -> ir.Value:
    """Return the place in dense row-major memory that `insert` writes."""
    offsets, steps = (
        list(ir.DenseI64ArrayAttr(insert.attributes[f"static_{name}"]))
        for name in ("offsets", "strides")
    )
    stride = 1
    strides: list[int] = []
    for size in reversed(ir.MemRefType(memory.type).shape):
        strides.insert(0, stride)
        stride = _product(stride, size)
    starts = [_product(offset, s) for offset, s in zip(offsets, strides, strict=True)]
    layout = ir.StridedLayoutAttr.get(
        _DYNAMIC if _DYNAMIC in starts else sum(starts),
        [_product(step, s) for step, s in zip(steps, strides, strict=True)],
    )
    source = ir.RankedTensorType(insert.operands[0].type)
    return ir.Operation.create(
        "memref.subview",
        results=[ir.MemRefType.get(source.shape, source.element_type, layout)],
        operands=[memory, *list(insert.operands)[2:]],
        attributes={
            **{
                n: insert.attributes[n]
                for n in ("static_offsets", "static_sizes", "static_strides")
            },
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(
                [1, *list(ir.DenseI32ArrayAttr(insert.attributes["operandSegmentSizes"]))[2:]]
            ),
        },
    ).result


def _product(a: int, b: int) -> int:
    return _DYNAMIC if _DYNAMIC in (a, b) and 0 not in (a, b) else a * b

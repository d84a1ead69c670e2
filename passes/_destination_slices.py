"""Writes of many slices of one tensor, said as writes to memory before one-shot bufferization.

Each `tensor.insert_slice` of a concat takes the tensor that the one before made. Bufferization
compares, for each write of such a chain, every other with every read: the time grows with the cube
of the length. Where nobody else sees the tensors between, there is nothing to compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """Return the writes from `insert` on such that only the next one sees the result of each."""
    chain = []
    while insert is not None and (write := _write(insert)) is not None:
        chain.append(write)
        users = [use.owner.operation for use in insert.result.uses]
        insert = next((u for u in users if u.name == _INSERT and _into(u, insert.result)), None)
    return chain


def _write(insert: ir.Operation) -> _Write | None:
    """Return what `insert` writes, or None where others see the tensor that it changes."""
    target = insert.operands[1]
    others = [use.owner.operation for use in target.uses if use.owner.operation != insert]
    if len(others) > 1 or not _into(insert, target):
        return None
    extract = others[0] if others else None
    if extract is not None and not _is_read_of(extract, insert):
        return None
    return _Write(insert, extract)


def _into(insert: ir.Operation, target: ir.Value) -> bool:
    source = ir.RankedTensorType(insert.operands[0].type)
    return (
        insert.operands[1] == target
        and insert.operands[0] != target
        and source.rank == ir.RankedTensorType(target.type).rank
    )


def _is_read_of(extract: ir.Operation, insert: ir.Operation) -> bool:
    """Say whether `extract` reads the slice that `insert` writes, in the same block."""
    return (
        extract.name == _EXTRACT
        and extract.block == insert.block
        and extract.result.type == insert.operands[0].type
        and list(extract.operands)[1:] == list(insert.operands)[2:]
        and all(
            extract.attributes[f"static_{name}"] == insert.attributes[f"static_{name}"]
            for name in ("offsets", "sizes", "strides")
        )
    )


def _rewrite(chain: Sequence[_Write]) -> None:
    tensor, last = chain[0].insert.operands[1], chain[-1].insert
    type_ = ir.RankedTensorType(tensor.type)
    with ir.InsertionPoint(chain[0].first), chain[0].first.location:
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

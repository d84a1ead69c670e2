"""Give each intermediate tensor a place in one arena."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from metadef import ir
from metadef.dialects.metadef.attributes import symbol
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.symbolic import Dim

from ._arena import Buffer, align, place
from ._buffers import byte_size, element_bytes, root_of

DISPATCH = "metadef.dispatch"
OFFSETS = "offsets"
OUTPUT = "output"
ARENA = "metadef.arena"
ARENA_BEFORE = "metadef.arena_before"

_SOURCES = ("metadef.constant", "metadef.fill", "metadef.iota", "metadef.dim")
_POINTWISE = frozenset({"metadef.pointwise", "func.return", *_SOURCES})


@dataclass(frozen=True)
class PlanMemory(Pass):
    """Plan the arena of @main and of @init.

    Before:
        %0 = "metadef.dispatch"(%x) <{kernel = @relu_0}>
        %1 = "metadef.dispatch"(%0) <{kernel = @softmax_0}>
        return %1
    After:
        func.func @main(..) attributes {metadef.arena = "B*3072", metadef.arena_before = "B*6144"}
        %0 = "metadef.dispatch"(%x) <{kernel = @relu_0, offsets = ["0"]}>
        %1 = "metadef.dispatch"(%0) <{kernel = @softmax_0, offsets = ["output"]}>
        return %1

    `offsets` has a byte offset for each result, an expression of the module's symbols and a
    multiple of 64, or "output": the result, perhaps under a reshape, is a result of the function
    and lives in a buffer that the caller gives. `form-kernels` sees to it that each result of the
    function is a buffer of its own. A value lives from its dispatch to its last use, under any
    reshape. A kernel of pointwise ops with one result writes over an input that dies there and has
    the same shape and element size, so such a kernel's arguments may alias.
    `metadef.arena` is the arena's size in bytes, `metadef.arena_before` the sum over the results
    that it holds.
    """

    accepts = FRONT
    requires = "the result of outline-kernels"
    leaves = "the same, each dispatch with offsets"

    def run(self, module: ir.Operation) -> None:
        functions = [op for op in ir.entry_block(module) if op.operation.name == "func.func"]
        overwrites = {op.name.value: _may_overwrite(op) for op in functions if _is_kernel(op)}
        in_place: set[str] = set()
        for op in functions:
            if not _is_kernel(op) and not op.is_external:
                in_place |= _plan(op, overwrites)
        for op in functions:
            if _is_kernel(op) and op.name.value not in in_place:
                op.attributes["metadef.noalias"] = ir.UnitAttr.get()


def _plan(function: ir.OpView, overwrites: Mapping[str, Sequence[int]]) -> set[str]:
    """Set the offsets of a function; return the kernels that write over an input."""
    ops = [op.operation for op in ir.entry_block(function).operations]
    outputs = {root_of(v) for v in ops[-1].operands}
    buffers, where = _lifetimes(ops, outputs, overwrites)
    offsets, total = place(buffers)
    before = Dim.of(0)
    for op in ops:
        if op.name != DISPATCH:
            continue
        texts = []
        for result in op.results:
            texts.append(OUTPUT if result in outputs else str(offsets[where[result]]))
            if result not in outputs:
                before = before + align(byte_size(result.type))
        op.attributes[OFFSETS] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])
    function.operation.attributes[ARENA] = ir.StringAttr.get(str(total))
    function.operation.attributes[ARENA_BEFORE] = ir.StringAttr.get(str(before))
    return {
        symbol(op, "kernel")
        for op in ops
        if op.name == DISPATCH
        for result in op.results
        if result in where and any(where.get(root_of(v)) == where[result] for v in op.operands)
    }


def _lifetimes(
    ops: Sequence[ir.Operation],
    outputs: Collection[ir.Value],
    overwrites: Mapping[str, Sequence[int]],
) -> tuple[list[Buffer], dict[ir.Value, int]]:
    """Return the buffers, and which one holds each dispatch result that is not in `outputs`."""
    last_use = {root_of(v): i for i, op in enumerate(ops) for v in op.operands}
    buffers: list[Buffer] = []
    where: dict[ir.Value, int] = {}
    for i, op in enumerate(ops):
        if op.name != DISPATCH:
            continue
        for result in op.results:
            if result in outputs:
                continue
            end = last_use.get(result, i)
            # Reshapes of the result use it too, but only what reads them lengthens its life.
            over = [
                where[root]
                for k in overwrites[symbol(op, "kernel")]
                if (root := root_of(op.operands[k])) in where
                and last_use[root] == i
                and [root_of(v) for v in op.operands].count(root) == 1
            ]
            if over:
                where[result] = over[0]
                buffers[over[0]] = replace(buffers[over[0]], end=end)
            else:
                where[result] = len(buffers)
                buffers.append(Buffer(byte_size(result.type), i, end))
    return buffers, where


def _may_overwrite(kernel: ir.OpView) -> list[int]:
    """Return the arguments that the kernel's result may be written over.

    The kernel has one result and is pointwise, so it reads an element of such an argument before
    it writes the element at the same place, and at no other time.
    """
    block = ir.entry_block(kernel)
    ops = [op.operation for op in block.operations]
    results = ops[-1].operands
    if len(results) != 1 or any(op.name not in _POINTWISE for op in ops):
        return []
    type_ = results[0].type
    dims, width = dims_of(type_), element_bytes(element_of(type_))
    return [
        i
        for i, argument in enumerate(block.arguments)
        if dims_of(argument.type) == dims and element_bytes(element_of(argument.type)) == width
    ]


def _is_kernel(function: ir.OpView) -> bool:
    return "metadef.kernel" in function.operation.attributes

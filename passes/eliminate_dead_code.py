"""Pass `eliminate-dead-code`: erase ops that nothing uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.dialects.metadef.op import MetadefOp, create
from metadef.dialects.metadef.ops.kernel import KernelOp
from metadef.dialects.metadef.ops.yield_ import yield_
from metadef.pipeline import Pass

#: ops of other dialects that are known to be pure; anything else stays
_PURE_DIALECTS = ("arith.", "math.", "tensor.", "torch_c.", "builtin.unrealized_conversion_cast")
_IMPURE = ("tensor.yield",)


@dataclass(frozen=True)
class EliminateDeadCode(Pass):
    """Erase pure ops without uses, weights among them, from the last op to the first.

    Kernel results that nobody reads go too, with the ops in the kernel that made them, and so do
    kernel operands that the region does not read.

    Before:
        %0 = "metadef.weight"() {name = "w"} : () -> tensor<4xf32>
        %1 = "metadef.pointwise"(%x, %0) {fn = "add", ..} : (..) -> tensor<4xf32>
        return %x : tensor<4xf32>
    After:
        return %x : tensor<4xf32>
    """

    requires = "any module"
    leaves = "the same without dead metadef, arith, math and tensor ops"

    def run(self, module: ir.Operation) -> None:
        for region in module.regions:
            for block in region:
                _clean(block)


def _clean(block: ir.Block) -> None:
    for op in reversed(list(block.operations)):
        operation = op.operation
        if _is_dead(op):
            operation.erase()
            continue
        if operation.name == "metadef.kernel":
            operation = _trim_kernel(operation)
        for region in operation.regions:
            for inner in region:
                _clean(inner)
        if operation.name == "metadef.kernel":
            _drop_operands(operation)


def _is_dead(op: Any) -> bool:
    operation = op.operation
    if any(_is_used(r) for r in operation.results) or not len(operation.results):
        return False
    if isinstance(op, MetadefOp):
        return True
    name = operation.name
    return name.startswith(_PURE_DIALECTS) and name not in _IMPURE and not len(operation.regions)


def _is_used(value: ir.Value) -> bool:
    return next(iter(value.uses), None) is not None


def _trim_kernel(operation: ir.Operation) -> ir.Operation:
    """Return the kernel without its unused results, rebuilt if there are any."""
    kept = [i for i, r in enumerate(operation.results) if _is_used(r)]
    if len(kept) == len(operation.results):
        return operation
    block = operation.regions[0].blocks[0]
    last = list(block.operations)[-1].operation
    yielded = [last.operands[i] for i in kept]
    last.erase()
    with ir.InsertionPoint(block), operation.location:
        yield_(yielded)
    return _rebuild(operation, list(operation.operands), kept)


def _drop_operands(operation: ir.Operation) -> None:
    """Erase the block arguments that the kernel's region does not read, with their operands."""
    block = operation.regions[0].blocks[0]
    kept = [i for i, a in enumerate(block.arguments) if _is_used(a)]
    if len(kept) == len(block.arguments):
        return
    operands = [operation.operands[i] for i in kept]
    for i in reversed(range(len(block.arguments))):
        if i not in kept:
            block.erase_argument(i)
    _rebuild(operation, operands, list(range(len(operation.results))))


def _rebuild(operation: ir.Operation, operands: list[ir.Value], kept: list[int]) -> ir.Operation:
    """Replace a kernel by one with other operands and the `kept` results; return it."""
    with ir.InsertionPoint(operation), operation.location:
        made = create(KernelOp, operands, [operation.results[i].type for i in kept], regions=1)
    for name in operation.attributes:
        key = getattr(name, "name", name)
        if key not in made.attributes:
            made.attributes[key] = operation.attributes[key]
    operation.regions[0].blocks[0].append_to(made.regions[0])
    for new, i in zip(made.results, kept, strict=True):
        operation.results[i].replace_all_uses_with(new)
    operation.erase()
    return made

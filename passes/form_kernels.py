"""Group the ops of @main into kernels: pointwise, epilogue and prologue fusion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metadef import ir
from metadef.dialects.metadef.ops.kernel import kernel
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.yield_ import yield_
from metadef.dialects.metadef.shapes import ONE
from metadef.dialects.metadef.types import dims_of
from metadef.forms import FRONT
from metadef.pipeline import Pass

from ._boundaries import Boundaries
from ._buffers import RESHAPE, has_uses, owner_of, root_of, values_known_once
from ._fusion import UNPACK, Fusion
from ._locations import fuse_locations

WEIGHT = "metadef.weight"
_SOURCES = frozenset({"metadef.constant", "metadef.fill", "metadef.iota", "metadef.dim"})
_CHEAP = frozenset({"metadef.pointwise", "metadef.broadcast", "metadef.transpose", RESHAPE})


@dataclass(frozen=True)
class FormKernels(Pass):
    """Put every op of @main in a `metadef.kernel` region, a convex group of at most `max_ops` ops.

    Before:
        %0 = "metadef.contraction"(%x, %w) <{transpose_lhs = false, transpose_rhs = false}>
        %1 = "metadef.pointwise"(%0, %b) <{fn = "add"}>
        %2 = "metadef.pointwise"(%1) <{fn = "relu"}>
    After:
        %0 = "metadef.kernel"(%x, %w, %b) ({
        ^bb0(%a0, %a1, %a2):
          %1 = "metadef.contraction"(%a0, %a1) <{transpose_lhs = false, transpose_rhs = false}>
          %2 = "metadef.pointwise"(%1, %a2) <{fn = "add"}>
          %3 = "metadef.pointwise"(%2) <{fn = "relu"}>
          "metadef.yield"(%3)
        })

    `reshape` and `weight` stay outside: a reshape renames a dense buffer. Constants and index
    tensors are cloned into the kernels that read them. A result of @main that would be an input,
    a weight or another result by a second name gets a copying kernel, so that each result is a
    buffer of its own. Ops on weights alone do not share a kernel with others: they run once.

    Pointwise ops that follow each other share a kernel. Whether such a chain joins the sum of
    products, reduction or other anchor before or after it is a decision: `cost/fusion.py` prices it
    by the module's `device.spec` (without one, what repeats no work is fused), and the module's
    `metadef.plan` says otherwise, `"fused"` or `"apart"` (see `_planned.py`); what cannot be is
    passed over.
    """

    accepts = FRONT
    requires = "metadef ops in one block of @main"
    leaves = "@main of metadef.kernel, metadef.reshape and metadef.weight"

    max_ops: int = 32

    def run(self, module: ir.Operation) -> None:
        for op in ir.entry_block(module):
            if op.operation.name == "func.func" and not op.is_external:
                _form(ir.entry_block(op), self.max_ops, Boundaries(module))


def _form(block: ir.Block, max_ops: int, boundaries: Boundaries) -> None:
    ops = list(block.operations)
    cloned = _find_cloned(ops)
    _copy_shared_results(ops[-1], cloned)
    ops = list(block.operations)
    # An unpack is a view for who reads the weight, not something to make of it.
    once = values_known_once(block, without=UNPACK)
    real = [op for op in ops if op.operation not in cloned and op.operation.name != WEIGHT]
    groups = Fusion(real, once, max_ops, boundaries).run()
    end = real[-1]
    for group in list(groups.in_order()):
        members = [groups.nodes[i].op for i in groups.members(group)]
        if members[0] == end.operation:
            continue
        if members[0].name == RESHAPE:
            members[0].move_before(end.operation)
        else:
            build_kernel(members, end, cloned)
    for op in reversed(ops):
        if op.operation in cloned and not has_uses(op.operation):
            op.operation.erase()


def build_kernel(
    members: Sequence[ir.Operation], before: ir.OpView, cloned: frozenset[ir.Operation]
) -> None:
    """Move `members` into a new kernel placed before `before`; ops in `cloned` are copied along."""
    inside = set(members)
    inputs: dict[ir.Value, None] = {}
    for op in members:
        for value in op.operands:
            owner = owner_of(value)
            if owner is None or (owner not in inside and owner not in cloned):
                inputs.setdefault(value)
    outputs = [
        result
        for op in members
        for result in op.results
        if any(use.owner.operation not in inside for use in result.uses)
    ]
    with ir.InsertionPoint(before), fuse_locations(op.location for op in members):
        made = kernel(list(inputs), [v.type for v in outputs]).operation
    body = made.regions[0].blocks[0]
    new_values: dict[ir.Value, ir.Value] = dict(zip(inputs, body.arguments, strict=True))
    for old, new in zip(outputs, made.results, strict=True):
        for use in list(old.uses):
            if use.owner.operation not in inside:
                use.owner.operation.operands[use.operand_number] = new
    for op in members:
        for i, value in enumerate(op.operands):
            if value not in new_values and (owner := owner_of(value)) in cloned:
                assert owner is not None
                _clone_into(owner, body, new_values)
            if value in new_values:
                op.operands[i] = new_values[value]
        body.append(op)
    with ir.InsertionPoint(body), made.location:
        yield_(outputs)


def _clone_into(op: ir.Operation, body: ir.Block, new_values: dict[ir.Value, ir.Value]) -> None:
    """Copy a constant, or a cheap op on constants, to the end of `body`."""
    for value in op.operands:
        if value not in new_values and (owner := owner_of(value)) is not None:
            _clone_into(owner, body, new_values)
    copy = op.clone(ir.InsertionPoint(body))
    for i, value in enumerate(op.operands):
        copy.operands[i] = new_values[value]
    new_values.update(zip(op.results, copy.results, strict=True))


def _find_cloned(ops: Sequence[ir.OpView]) -> frozenset[ir.Operation]:
    """Return the constants and the cheap ops on them: each kernel that reads one gets a copy."""
    found: set[ir.Operation] = set()
    for op in (o.operation for o in ops):
        if op.name in _SOURCES:
            found.add(op)
        elif op.name in _CHEAP and all(owner_of(v) in found for v in op.operands):
            # A pointwise op on a whole index tensor costs time: it is made once, by a kernel.
            dims = dims_of(op.results[0].type)
            if op.name != "metadef.pointwise" or all(d == ONE for d in dims):
                found.add(op)
    return frozenset(found)


def _copy_shared_results(end: ir.OpView, cloned: frozenset[ir.Operation]) -> None:
    """Return a copy of each result that would not be a buffer of its own."""
    seen: set[ir.Value] = set()
    for i, value in enumerate(end.operation.operands):
        root = root_of(value)
        owner = owner_of(root)
        if owner is None or owner.name == WEIGHT or owner in cloned or root in seen:
            with ir.InsertionPoint(end), owner.location if owner else end.location:
                end.operation.operands[i] = pointwise("identity", value)
        seen.add(root)

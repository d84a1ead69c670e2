"""Keys of decisions: the same wherever the same is computed, on whatever device."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from metadef import ir

from ._buffers import owner_of
from ._kernel_abi import NOALIAS
from ._kernel_choice import CHOICE

#: a contraction's attribute with the type that its weights are stored in
WEIGHTS = "metadef.weights"
#: what a kernel is called and how it is used, and what a plan says of a function or an op
_OUTSIDE = ("sym_name", "sym_visibility", NOALIAS, CHOICE, "metadef.algorithm", WEIGHTS)
_UNPACK = "metadef.unpack"
_KEY_DIGITS = 32


def kernel_key(function: ir.OpView) -> str:
    """Return the structure key of a kernel: of its ops, types and symbols.

    How wide the panels of its packed weights are is the device's business, and stays out.
    """
    module = ir.Module.create()
    copy = function.operation.clone(ip=ir.InsertionPoint(module.body))
    for name in _OUTSIDE:
        if name in copy.attributes:
            del copy.attributes[name]
    _unpack_arguments(copy.opview)
    text = copy.get_asm(print_generic_op_form=True, use_local_scope=True, assume_verified=True)
    return _hash(text)


def operation_key(op: ir.OpView | ir.Operation) -> str:
    """Return the structure key of an op: its name, attributes and types."""
    operation = op.operation
    names = sorted(name for name in operation.attributes if name not in _OUTSIDE)
    kept = [(name, str(operation.attributes[name])) for name in names]
    operands = [str(v.type) for v in operation.operands]
    results = [str(v.type) for v in operation.results]
    return _hash("\n".join(map(str, (operation.name, kept, operands, results))))


def chain_key(place: str, ops: Sequence[ir.Operation]) -> str:
    """Return the structure key of ops, in their order, that read each other: what each one is, and
    which of the others its operands are from. `place` says where in a kernel they are."""
    order = {op: n for n, op in enumerate(ops)}
    parts = [(operation_key(op), [order.get(owner_of(v)) for v in op.operands]) for op in ops]
    return _hash("\n".join(map(str, (place, *parts))))


def operations_key(ops: Iterable[ir.OpView]) -> str:
    """Return the structure key of several ops that are decided on together."""
    return _hash(" ".join(operation_key(op) for op in ops))


def _unpack_arguments(function: ir.OpView) -> None:
    """Give arguments in panels the types that they have outside of them."""
    entry = ir.entry_block(function)
    for argument in entry.arguments:
        users = [use.owner.operation for use in argument.uses]
        if not users or any(user.name != _UNPACK for user in users):
            continue
        if len({user.results[0].type for user in users}) > 1:
            continue
        argument.set_type(users[0].results[0].type)
        for user in users:
            user.results[0].replace_all_uses_with(argument)
            user.erase()
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    inputs = [argument.type for argument in entry.arguments]
    changed = ir.FunctionType.get(inputs, list(type_.results))
    function.attributes["function_type"] = ir.TypeAttr.get(changed)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_KEY_DIGITS]

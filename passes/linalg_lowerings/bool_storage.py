"""Tensors of i1 become tensors of i8: a bool is a byte in memory, as torch has it."""

from __future__ import annotations

import numpy as np

from metadef import ir


def store_bools_as_bytes(function: ir.OpView) -> None:
    """Retype every tensor of i1 in a function, and convert where scalars come out of or go in."""
    ops = list(ir.operations(function))
    for op in ops:
        _scalars_into_tensors(op)
    for op in ops:
        _scalars_out_of_tensors(op)
    block = ir.entry_block(function)
    for value in [*block.arguments, *(v for op in ops for v in _values(op))]:
        if _is_bool_tensor(value.type):
            value.set_type(_bytes_type(value.type))
    results = list(block.operations)[-1].operation.operands
    type_ = ir.FunctionType.get([a.type for a in block.arguments], [r.type for r in results])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)


def _values(op: ir.OpView) -> list[ir.Value]:
    arguments = [a for r in op.operation.regions for b in r for a in b.arguments]
    return [*op.operation.results, *arguments]


def _is_bool_tensor(type_: ir.Type) -> bool:
    if not isinstance(type_, ir.RankedTensorType):
        return False
    element = type_.element_type
    return isinstance(element, ir.IntegerType) and element.width == 1


def _bytes_type(type_: ir.Type) -> ir.Type:
    byte = ir.IntegerType.get_signless(8)
    return ir.RankedTensorType.get(
        ir.RankedTensorType(type_).shape, byte, loc=ir.Location.unknown()
    )


def _is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.IntegerType) and type_.width == 1


def _widened(value: ir.Value) -> ir.Value:
    return ir.arith.extui(ir.IntegerType.get_signless(8), value)


def _scalars_into_tensors(op: ir.OpView) -> None:
    """Widen the i1 scalars that an op stores."""
    name, operands = op.operation.name, op.operation.operands
    if name == "arith.constant" and _is_bool_tensor(op.operation.results[0].type):
        literal = ir.DenseElementsAttr(op.operation.attributes["value"])
        shape = ir.RankedTensorType(literal.type).shape
        if literal.is_splat:
            numbers = np.full(shape, int(literal.get_splat_value().value), np.int8)
        else:
            numbers = np.array([int(v) for v in literal], np.int8).reshape(shape)
        op.operation.attributes["value"] = ir.DenseElementsAttr.get(
            numbers, type=_bytes_type(literal.type)
        )
    elif name in ("tensor.insert", "linalg.fill") and _is_bool(operands[0].type):
        with ir.InsertionPoint(op), op.location:
            op.operation.operands[0] = _widened(operands[0])
        if name == "linalg.fill":
            _retype_body(op, [0, 1])
    elif name in ("tensor.splat", "tensor.from_elements"):
        if _is_bool_tensor(op.operation.results[0].type):
            with ir.InsertionPoint(op), op.location:
                for i, value in enumerate(list(operands)):
                    if _is_bool(value.type):
                        op.operation.operands[i] = _widened(value)
    elif name == "linalg.generic":
        block = op.operation.regions[0].blocks[0]
        terminator = list(block.operations)[-1]
        with ir.InsertionPoint(terminator), op.location:
            for i, result in enumerate(op.operation.results):
                if _is_bool_tensor(result.type):
                    terminator.operation.operands[i] = _widened(terminator.operation.operands[i])


def _retype_body(op: ir.OpView, positions: list[int]) -> None:
    block = op.operation.regions[0].blocks[0]
    for i in positions:
        block.arguments[i].set_type(ir.IntegerType.get_signless(8))


def _scalars_out_of_tensors(op: ir.OpView) -> None:
    """Compare the bytes that an op loads with 0."""
    byte = ir.IntegerType.get_signless(8)
    if op.operation.name == "tensor.extract" and _is_bool(op.operation.results[0].type):
        value = op.operation.results[0]
        _compare(value, ir.InsertionPoint.after(op))
    elif op.operation.name == "linalg.generic":
        block = op.operation.regions[0].blocks[0]
        for argument, operand in zip(block.arguments, op.operation.operands, strict=True):
            if _is_bool_tensor(operand.type) and argument.type != byte:
                _compare(argument, ir.InsertionPoint.at_block_begin(block))


def _compare(value: ir.Value, place: ir.InsertionPoint) -> None:
    """Make `value` a byte and its users use whether it is not 0."""
    byte = ir.IntegerType.get_signless(8)
    with place, ir.Location.unknown():
        zero = ir.arith.constant(byte, 0)
        value_users = [(use.owner, use.operand_number) for use in value.uses]
        value.set_type(byte)
        flag = ir.arith.cmpi(ir.arith.CmpIPredicate.ne, value, zero)
    for owner, number in value_users:
        owner.operation.operands[number] = flag

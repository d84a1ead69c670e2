"""Pointwise ops and the ops without operands: nodes of an expression, no code."""

from __future__ import annotations

from typing import Any

import numpy as np

from metadef import ir
from metadef.dialects.metadef.attributes import integer, scalar, text
from metadef.symbolic import Dim

from .expression import Apply, Constant, Value, apply, cast, index, size
from .kernel import Kernel, broadcast, result_type, tensor_value
from .tensors import storage_type


def lower_pointwise(kernel: Kernel, op: Any) -> list[Value]:
    """`fn(xs...)` on operands broadcast to the result."""
    dims, element = result_type(op)
    fn = text(op, "fn")
    args = tuple(broadcast(kernel.value(x), dims).expr for x in op.operation.operands)
    if fn == "identity":
        return [Value(dims, args[0])]
    if fn == "cast" and args[0].element == element:
        return [Value(dims, args[0])]
    if fn == "pow" and isinstance(args[1], Constant) and args[1].value in (2, 3):
        square = apply("mul", args[0], args[0])
        return [Value(dims, square if args[1].value == 2 else apply("mul", square, args[0]))]
    if fn == "pow" and isinstance(args[1], Constant) and args[1].value == 0.5:
        return [Value(dims, apply("sqrt", args[0]))]
    return [Value(dims, Apply(element, fn, args))]


def lower_fill(kernel: Kernel, op: Any) -> list[Value]:
    dims, element = result_type(op)
    return [Value(dims, Constant(element, scalar(op, "value")))]


def lower_dim(kernel: Kernel, op: Any) -> list[Value]:
    dims, element = result_type(op)
    return [Value(dims, cast(size(Dim.of(text(op, "expr"))), element))]


def lower_iota(kernel: Kernel, op: Any) -> list[Value]:
    """start + step * index, computed in i64 for integers and in f64 for doubles."""
    dims, element = result_type(op)
    position = cast(index(ir.AffineExpr.get_dim(integer(op, "dim"))), element)
    start, step = scalar(op, "start"), scalar(op, "step")
    value = position if step == 1 else apply("mul", position, Constant(element, step))
    return [Value(dims, value if start == 0 else apply("add", value, Constant(element, start)))]


def lower_constant(kernel: Kernel, op: Any) -> list[Value]:
    """A splat is a number, any other literal a constant tensor."""
    dims, element = result_type(op)
    value = op.operation.attributes["value"]
    if value.is_splat:
        return [Value(dims, Constant(element, value.get_splat_value().value))]
    stored = storage_type(element)
    if stored != element:
        value = _stored_literal(value, stored)
    tensor = ir.Operation.create(
        "arith.constant", results=[value.type], attributes={"value": value}
    ).result
    return [tensor_value(tensor, dims, element)]


def _stored_literal(value: Any, stored: ir.Type) -> ir.Attribute:
    """Return a literal of bools or of unsigned bytes as signless bytes."""
    numbers = np.array([int(v) for v in value], dtype=np.uint8).view(np.int8)
    shape = ir.RankedTensorType(value.type).shape
    return ir.DenseElementsAttr.get(
        numbers.reshape(shape), type=ir.RankedTensorType.get(shape, stored)
    )

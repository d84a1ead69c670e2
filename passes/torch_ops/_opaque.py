"""Wrap a torch op that has no conversion in `metadef.opaque`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.opaque import opaque as build_opaque
from metadef.dialects.metadef.ops.yield_ import yield_
from metadef.dialects.metadef.types import tensor_type
from metadef.symbolic import Dim

from . import build
from .call import Call, ScalarTensor, parse_vtensor
from .dtypes import bool_type, f64, i64, is_float, torch_dtype_text


def wrap(call: Call, values: Mapping[ir.Value, Any]) -> list[ir.Value]:
    """Build one `metadef.opaque` that holds a copy of the op; `values` are its operands' values.

    Tensors become block arguments of torch type; constants and lists are made again inside. An
    int that depends on symbols comes in as a rank-0 tensor.
    """
    wrapper = _Wrapper(values)
    for operand in call.op.operands:
        wrapper.find(operand)
    results = []
    for kind in call.results:
        if kind is None:
            call.fail("a result that is not a tensor cannot be left to torch-mlir")
        if kind.dims is None:
            call.fail("torch did not say the result's dims and metadef has no shape rule for it")
        results.append(tensor_type(kind.dims, kind.element))
    opaque = build_opaque(wrapper.operands, results, wrapper.types)
    block = opaque.regions[0].blocks[0]
    with ir.InsertionPoint(block), call.op.location:
        inside = [wrapper.build(o, block) for o in call.op.operands]
        copy = call.op.clone()
        for i, value in enumerate(inside):
            copy.operands[i] = value
        if "metadef.dims" in copy.attributes:
            del copy.attributes["metadef.dims"]
        yield_(list(copy.operation.results))
    return list(opaque.operation.results)


class _Wrapper:
    """Maps torch operands to the opaque op's operands, then makes them again in its block."""

    def __init__(self, values: Mapping[ir.Value, Any]) -> None:
        self.values = values
        self.operands: list[ir.Value] = []
        self.types: list[ir.Type] = []
        self.slots: dict[ir.Value, int] = {}

    def find(self, torch_value: ir.Value) -> None:
        """Give a tensor, or a number that the running model knows, an operand of its own."""
        if torch_value in self.slots:
            return
        value = self.values[torch_value]
        if parse_vtensor(str(torch_value.type)) is not None:
            if not isinstance(value, ir.Value):
                element, _ = _parsed(torch_value.type)
                value = build.number(value, element)
            self._add(torch_value, value, torch_value.type)
        elif isinstance(value, Dim | ScalarTensor):
            is_float_scalar = isinstance(value, ScalarTensor) and is_float(
                build.element(value.value)
            )
            tensor = build.number(value, f64() if is_float_scalar else i64())
            text = torch_dtype_text(build.element(tensor))
            self._add(torch_value, tensor, ir.Type.parse(f"!torch.vtensor<[],{text}>"))
        elif isinstance(value, list):
            for item in torch_value.owner.operands:
                self.find(item)

    def build(self, torch_value: ir.Value, block: ir.Block) -> ir.Value:
        """Return the copy of an operand inside the block."""
        slot = self.slots.get(torch_value)
        if slot is not None:
            argument: ir.Value = block.arguments[slot]
            if parse_vtensor(str(torch_value.type)) is not None:
                return argument
            name = (
                "torch.aten.Float.Tensor"
                if "float" in str(torch_value.type)
                else ("torch.aten.Int.Tensor")
            )
            return ir.Operation.create(
                name, results=[torch_value.type], operands=[argument]
            ).results[0]
        value = self.values[torch_value]
        if isinstance(value, list):
            items = [self.build(item, block) for item in torch_value.owner.operands]
            return ir.Operation.create(
                torch_value.owner.name, results=[torch_value.type], operands=items
            ).results[0]
        return _constant(torch_value, value)

    def _add(self, torch_value: ir.Value, value: ir.Value, torch_type: ir.Type) -> None:
        self.slots[torch_value] = len(self.operands)
        self.operands.append(value)
        self.types.append(torch_type)


def _parsed(torch_type: ir.Type) -> tuple[ir.Type, tuple[int | None, ...]]:
    parsed = parse_vtensor(str(torch_type))
    assert parsed is not None
    return parsed


def _constant(torch_value: ir.Value, value: Any) -> ir.Value:
    """Return a torch constant; one that the function computed is written as its value."""
    attributes: dict[str, ir.Attribute] = {}
    if value is None:
        kind = "none"
    elif isinstance(value, bool):
        kind, attributes = "bool", {"value": ir.IntegerAttr.get(bool_type(), value)}
    elif isinstance(value, int):
        kind, attributes = "int", {"value": ir.IntegerAttr.get(i64(), value)}
    elif isinstance(value, float):
        kind, attributes = "float", {"value": ir.FloatAttr.get(f64(), value)}
    else:
        kind = "device" if "Device" in str(torch_value.type) else "str"
        attributes = {"value": ir.StringAttr.get(str(value))}
    return ir.Operation.create(
        f"torch.constant.{kind}", results=[torch_value.type], attributes=attributes
    ).results[0]

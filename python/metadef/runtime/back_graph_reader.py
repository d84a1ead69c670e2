"""Reads the plan of a program from the IR of its planned back graph."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from metadef import ir
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.symbolic import Dim

from .back_graph import Arena, BackGraph, Buffer, Input, Output, Plan, Step, Tensor, Weight

if TYPE_CHECKING:
    import torch

_OUTPUT = "output"


def read_plan(module: ir.Module) -> Plan:
    """Read @main and @init of a planned back graph."""
    main, init = find_function(module, "main"), find_function(module, "init")
    assert main is not None, "the back graph has no @main"
    if init is None:
        return Plan(read_function(main))
    names = ir.ArrayAttr(init.attributes["metadef.results"])
    made = tuple(ir.StringAttr(name).value for name in names)
    return Plan(read_function(main), read_function(init), made)


def find_function(module: ir.Module, name: str) -> ir.OpView | None:
    """Return the function called `name` of the module."""
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.name.value == name:
            return op
    return None


def read_function(function: ir.OpView) -> BackGraph:
    """Read a planned function of `metadef.dispatch`, `metadef.reshape` and `metadef.weight`."""
    block = ir.entry_block(function)
    buffers: dict[ir.Value, Buffer] = {}
    weights: dict[str, Tensor] = {}
    outputs: list[Tensor] = []
    steps: list[Step] = []
    for number, argument in enumerate(block.arguments):
        buffers[argument] = Input(number)
    for op in block.operations:
        operation = op.operation
        if operation.name == "metadef.weight":
            name = ir.StringAttr(op.attributes["name"]).value
            buffers[operation.result] = Weight(name)
            weights[name] = tensor_of(operation.result.type)
        elif operation.name == "metadef.reshape":
            buffers[operation.result] = buffers[operation.operands[0]]
        elif operation.name == "metadef.dispatch":
            reads = tuple(buffers[v] for v in operation.operands)
            for value, place in zip(operation.results, _offsets(op), strict=True):
                buffers[value] = _result_buffer(value, place, outputs, len(buffers))
            steps.append(
                Step(
                    ir.FlatSymbolRefAttr(op.attributes["kernel"]).value,
                    reads,
                    tuple(buffers[v] for v in operation.results),
                    str(op.location),
                    _sizes(op),
                )
            )
        else:
            assert operation.name == "func.return", f"'{operation.name}' in the back graph"
            results = tuple((buffers[v], tensor_of(v.type)) for v in operation.operands)
    return BackGraph(
        inputs=tuple(tensor_of(a.type) for a in block.arguments),
        steps=tuple(steps),
        outputs=tuple(outputs),
        results=results,
        weights=weights,
        arena=_size(function, "metadef.arena"),
        arena_before=_size(function, "metadef.arena_before"),
    )


def tensor_of(type_: ir.Type) -> Tensor:
    """Return dims and dtype of a tensor type."""
    return Tensor(dims_of(type_), torch_dtype(element_of(type_)))


@functools.cache
def _dtypes() -> dict[str, torch.dtype]:
    import torch

    return {
        "f16": torch.float16,
        "bf16": torch.bfloat16,
        "f32": torch.float32,
        "f64": torch.float64,
        "i1": torch.bool,
        "i8": torch.int8,
        "ui8": torch.uint8,
        "i16": torch.int16,
        "i32": torch.int32,
        "i64": torch.int64,
    }


def torch_dtype(element: ir.Type) -> torch.dtype:
    """Return torch's name for an element type."""
    return _dtypes()[str(element)]


def _result_buffer(value: ir.Value, place: str, outputs: list[Tensor], number: int) -> Buffer:
    tensor = tensor_of(value.type)
    if place == _OUTPUT:
        outputs.append(tensor)
        return Output(len(outputs) - 1)
    return Arena(number, Dim.of(place), tensor.bytes)


def _offsets(op: ir.OpView) -> list[str]:
    return [ir.StringAttr(a).value for a in ir.ArrayAttr(op.attributes["offsets"])]


def _sizes(op: ir.OpView) -> dict[str, int]:
    if "sizes" not in op.attributes:
        return {}
    sizes = ir.DictAttr(op.attributes["sizes"])
    return {named.name: ir.IntegerAttr(named.attr).value for named in sizes}


def _size(function: ir.OpView, name: str) -> Dim:
    return Dim.of(ir.StringAttr(function.attributes[name]).value)

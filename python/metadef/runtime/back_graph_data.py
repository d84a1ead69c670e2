"""The plan of a program as data for JSON, which the compile cache keeps."""

from __future__ import annotations

from typing import Any

import torch

from metadef.symbolic import Dim

from .back_graph import Arena, BackGraph, Buffer, Input, Output, Plan, Step, Tensor, Weight


def plan_to_data(plan: Plan) -> dict[str, Any]:
    """Return data of which `plan_from_data` makes the plan."""
    init = None if plan.init is None else _graph_to_data(plan.init)
    return {"main": _graph_to_data(plan.main), "init": init, "made": plan.made}


def plan_from_data(data: dict[str, Any]) -> Plan:
    """Return the plan that `plan_to_data` wrote."""
    init = None if data["init"] is None else _graph_from_data(data["init"])
    return Plan(_graph_from_data(data["main"]), init, tuple(data["made"]))


def _graph_to_data(graph: BackGraph) -> dict[str, Any]:
    return {
        "inputs": [_tensor_to_data(tensor) for tensor in graph.inputs],
        "steps": [
            {
                "kernel": step.kernel,
                "reads": [_buffer_to_data(buffer) for buffer in step.reads],
                "writes": [_buffer_to_data(buffer) for buffer in step.writes],
                "location": step.location,
                "sizes": dict(step.sizes),
            }
            for step in graph.steps
        ],
        "outputs": [_tensor_to_data(tensor) for tensor in graph.outputs],
        "results": [(_buffer_to_data(b), _tensor_to_data(t)) for b, t in graph.results],
        "weights": {name: _tensor_to_data(tensor) for name, tensor in graph.weights.items()},
        "arena": _dim_to_data(graph.arena),
        "arena_before": _dim_to_data(graph.arena_before),
    }


def _graph_from_data(data: dict[str, Any]) -> BackGraph:
    return BackGraph(
        inputs=tuple(map(_tensor_from_data, data["inputs"])),
        steps=tuple(
            Step(
                step["kernel"],
                tuple(map(_buffer_from_data, step["reads"])),
                tuple(map(_buffer_from_data, step["writes"])),
                step["location"],
                step["sizes"],
            )
            for step in data["steps"]
        ),
        outputs=tuple(map(_tensor_from_data, data["outputs"])),
        results=tuple((_buffer_from_data(b), _tensor_from_data(t)) for b, t in data["results"]),
        weights={name: _tensor_from_data(tensor) for name, tensor in data["weights"].items()},
        arena=Dim.of(data["arena"]),
        arena_before=Dim.of(data["arena_before"]),
    )


def _tensor_to_data(tensor: Tensor) -> list[Any]:
    return [str(tensor.dtype).removeprefix("torch."), *map(_dim_to_data, tensor.dims)]


def _tensor_from_data(data: list[Any]) -> Tensor:
    name, *dims = data
    return Tensor(tuple(map(Dim.of, dims)), getattr(torch, name))


def _dim_to_data(dim: Dim) -> int | str:
    return dim.value if dim.is_static else str(dim)


def _buffer_to_data(buffer: Buffer) -> list[Any]:
    match buffer:
        case Input(number):
            return ["input", number]
        case Weight(name):
            return ["weight", name]
        case Arena(number, offset, size):
            return ["arena", number, _dim_to_data(offset), _dim_to_data(size)]
        case Output(number):
            return ["output", number]


def _buffer_from_data(data: list[Any]) -> Buffer:
    match data:
        case ["input", number]:
            return Input(number)
        case ["weight", name]:
            return Weight(name)
        case ["arena", number, offset, size]:
            return Arena(number, Dim.of(offset), Dim.of(size))
        case _:
            return Output(data[1])

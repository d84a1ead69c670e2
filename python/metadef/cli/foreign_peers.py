"""Peers that are not torch's own: a model is exported, compiled by them, and called on tensors.

Each returns what binds the arguments of a call; the bound call returns arrays in the order of the
results of the model. Nothing is converted while it is timed.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from metadef.cli.models import Model

Bind = Callable[[tuple[Any, ...], Mapping[str, Any]], Callable[[], Any]]


def onnxruntime(model: Model, threads: int) -> Bind:
    """Run the model that torch.onnx writes, with every optimisation that keeps float32."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        with contextlib.redirect_stdout(sys.stderr):  # the exporter tells of its progress
            torch.onnx.export(_exported(model), f=path, dynamo=True, external_data=True)
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[], Any]:
        arrays = [tensor.numpy() for tensor in _inputs(args, kwargs)]
        feed = dict(zip(names, arrays, strict=True))
        return lambda: session.run(None, feed)

    return bind


def openvino(model: Model, threads: int) -> Bind:
    """Run the model in float32, tuned for the latency of one stream.

    It is traced, which OpenVINO does soonest, where the call is of tensors of fixed shapes alone;
    other models are exported.
    """
    import openvino

    if _is_traceable(model):
        converted = openvino.convert_model(model.module, example_input=model.args)
        shapes = [list(arg.shape) for arg in model.args]
    else:
        program = _exported(model)
        converted = openvino.convert_model(program)
        shapes = [_shape_of(value) for value in _placeholders(program)]
    converted.reshape(dict(zip(converted.inputs, shapes, strict=True)))
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",
    }
    request = openvino.Core().compile_model(converted, "CPU", settings).create_infer_request()

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[], Any]:
        arrays = [tensor.numpy() for tensor in _inputs(args, kwargs)]
        return lambda: request.infer(arrays, share_inputs=True, share_outputs=True).to_tuple()

    return bind


def iree(model: Model, threads: int) -> Bind:
    """Run what IREE compiles for this machine's CPU, on inputs that lie on its device already."""
    import iree.compiler
    import iree.runtime
    import torch_mlir.fx

    program = _exported(model)
    module = torch_mlir.fx.export_and_import(program, output_type="torch", func_name="main")
    with tempfile.TemporaryDirectory() as folder:
        source, binary = Path(folder) / "model.mlirbc", Path(folder) / "model.vmfb"
        with source.open("wb") as file:
            module.operation.write_bytecode(file)
        del module
        iree.compiler.compile_file(
            str(source), output_file=str(binary), input_type="torch", extra_args=_IREE_OPTIONS
        )
        if threads > 1:
            iree.runtime.flags.parse_flags(f"--task_topology_group_count={threads}")
        config = iree.runtime.Config("local-sync" if threads == 1 else "local-task")
        context = iree.runtime.SystemContext(config=config)
        context.add_vm_module(iree.runtime.VmModule.mmap(context.instance, str(binary)))
    function = context.modules.module["main"]

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Callable[[], Any]:
        arrays = [
            iree.runtime.asdevicearray(config.device, tensor.numpy())
            for tensor in _inputs(args, kwargs)
        ]
        return lambda: function(*arrays)

    return bind


_IREE_OPTIONS = [
    "--iree-opt-level=O3",
    "--iree-opt-data-tiling",
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]


class _Function(torch.nn.Module):
    """A function as a module: torch.export takes modules only."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def _exported(model: Model) -> torch.export.ExportedProgram:
    module = model.module
    if isinstance(module, torch.export.ExportedProgram):
        return module
    if not isinstance(module, torch.nn.Module):
        module = _Function(module)
    return torch.export.export(
        module, model.args, model.kwargs, dynamic_shapes=model.dynamic_shapes, strict=False
    )


def _is_traceable(model: Model) -> bool:
    fixed = model.dynamic_shapes is None and not model.kwargs
    tensors = all(isinstance(arg, torch.Tensor) for arg in model.args)
    return fixed and tensors and isinstance(model.module, torch.nn.Module)


def _inputs(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the tensors of a call in the order in which an exported program takes them."""
    leaves = pytree.tree_leaves((args, dict(kwargs)))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _placeholders(program: torch.export.ExportedProgram) -> list[torch.Tensor]:
    """Return the fake tensors that stand for the inputs of the user."""
    names = program.graph_signature.user_inputs
    values = {n.name: n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"}
    return [values[n] for n in names if isinstance(values.get(n), torch.Tensor)]


def _shape_of(value: torch.Tensor) -> list[int]:
    """Return the shape with -1 for each dim that may vary."""
    return [dim if isinstance(dim, int) else -1 for dim in value.shape]

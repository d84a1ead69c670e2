"""What the kernels of a planned back graph are: their ops, source lines, tensors and work."""

from __future__ import annotations

import re
from dataclasses import dataclass

from metadef import ir
from metadef.cost.work import Work, kernel_work
from metadef.runtime.back_graph import Tensor
from metadef.runtime.back_graph_reader import tensor_of
from metadef.symbolic import Dim

_PLACE = re.compile(r'"([^"]+)":(\d+):\d+')


@dataclass(frozen=True)
class KernelSummary:
    """A kernel for people: `add` of a pointwise op, `model.py:41`, `Bx768xf32`.

    `work` is what one run has to do.
    """

    name: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    work: Work


def summarize_kernels(module: ir.Module) -> tuple[KernelSummary, ...]:
    """Return a summary of each kernel function of the module, in order."""
    return tuple(
        summarize_kernel(op) for op in module.body.operations if "metadef.kernel" in op.attributes
    )


def summarize_kernel(function: ir.OpView) -> KernelSummary:
    """Return the summary of a kernel function."""
    ops = [op for op in ir.operations(function) if op.operation.name.startswith("metadef.")]
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    arguments = [tensor_of(t) for t in type_.inputs]
    results = [tensor_of(t) for t in type_.results]
    return KernelSummary(
        name=ir.StringAttr(function.attributes["sym_name"]).value,
        ops=tuple(_op_name(op) for op in ops if op.operation.name != "metadef.yield"),
        lines=tuple(dict.fromkeys(line for op in ops for line in lines_of(str(op.location)))),
        arguments=tuple(map(_text, arguments)),
        results=tuple(map(_text, results)),
        work=kernel_work(function),
    )


def lines_of(location: str) -> list[str]:
    """Return each `file:line` that the text of a location names; a fused one names several."""
    return [f"{file}:{line}" for file, line in _PLACE.findall(location)]


def _op_name(op: ir.OpView) -> str:
    """Return the name of the op, or the function that it computes."""
    attributes = op.operation.attributes
    if op.operation.name == "metadef.pointwise":
        return ir.StringAttr(attributes["fn"]).value
    return op.operation.name.removeprefix("metadef.")


def _text(tensor: Tensor) -> str:
    dtype = str(tensor.dtype).removeprefix("torch.")
    short = re.sub(r"^(b?float|u?int)(\d+)$", _short_dtype, dtype)
    return "x".join([*map(_dim_text, tensor.dims), short])


def _short_dtype(match: re.Match[str]) -> str:
    kind = {"float": "f", "bfloat": "bf", "int": "i", "uint": "ui"}[match[1]]
    return f"{kind}{match[2]}"


def _dim_text(dim: Dim) -> str:
    text = str(dim)
    return text if text.isidentifier() or text.isdigit() else f"({text})"

"""What a node of a graph is for people: the op's name, and the line of the model's code."""

from __future__ import annotations

import functools
import os
import re
from typing import Any

import torch
from torch import fx

#: where torch keeps its own code: such frames are not the model's
TORCH_FOLDER = os.path.dirname(torch.__file__)


def source_line(node: fx.Node) -> tuple[str, int] | None:
    """Return file and line of the model's code that made a node, if the trace knows it."""
    return _innermost_frame(node.meta.get("stack_trace") or "")


@functools.lru_cache(maxsize=4096)
def _innermost_frame(stack_trace: str) -> tuple[str, int] | None:
    """Return the innermost frame of the model's code, or of torch.nn where there is no other."""
    frames = re.findall(r'File "([^"]+)", line (\d+)', stack_trace)
    own = [f for f in frames if not f[0].startswith((TORCH_FOLDER, "torch/"))]
    layers = [f for f in frames if f[0].startswith(os.path.join(TORCH_FOLDER, "nn"))]
    chosen = own or layers
    return (chosen[-1][0], int(chosen[-1][1])) if chosen else None


def line_of(node: fx.Node) -> str:
    """Return `file:line` of the model's code that made the node, or ''."""
    place = source_line(node)
    return f"{place[0]}:{place[1]}" if place else ""


def op_name(node: fx.Node) -> str:
    """Return the op's name as torch spells it: `aten.add.Tensor`."""
    target: Any = node.target
    if isinstance(target, torch._ops.OpOverload):
        return torch_op_name(target).removeprefix("torch.").removesuffix(".default")
    return getattr(target, "__name__", str(target))


def torch_op_name(op: Any) -> str:
    """Return the torch dialect's name of an `OpOverload`: `torch.aten.add.Tensor`."""
    return "torch." + op._schema.name.replace("::", ".") + _suffix(op._schema.overload_name)


def _suffix(overload: str) -> str:
    return f".{overload}" if overload else ""

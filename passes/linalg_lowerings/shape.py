"""Views: rewritten maps where an affine map can say it, else a view of a stored tensor."""

from __future__ import annotations

from typing import Any

from metadef.dialects.metadef.attributes import integer, integers, text
from metadef.symbolic import Dim

from . import views
from .expression import Value
from .kernel import Kernel, broadcast, result_type, tensor_value


def lower_reshape(kernel: Kernel, op: Any) -> list[Value]:
    x = op.operation.operands[0]
    dims, element = result_type(op)
    try:
        return [views.reshape(kernel, kernel.value(x), dims)]
    except views.NotAView:
        tensor, value = kernel.stored(x)
        return [tensor_value(views.reshape_tensor(kernel, tensor, value.dims, dims), dims, element)]


def lower_broadcast(kernel: Kernel, op: Any) -> list[Value]:
    dims, _ = result_type(op)
    return [broadcast(kernel.value(op.operation.operands[0]), dims)]


def lower_transpose(kernel: Kernel, op: Any) -> list[Value]:
    return [views.transpose(kernel.value(op.operation.operands[0]), integers(op, "perm"))]


def lower_slice(kernel: Kernel, op: Any) -> list[Value]:
    x = op.operation.operands[0]
    dims, _ = result_type(op)
    dim = integer(op, "dim")
    start, step = Dim.of(text(op, "start")), integer(op, "step")
    try:
        return [views.slice_dim(kernel, kernel.value(x), dim, start, step, dims[dim])]
    except views.NotAView:
        _, value = kernel.stored(x)
        return [views.slice_dim(kernel, value, dim, start, step, dims[dim])]


def lower_unpack(kernel: Kernel, op: Any) -> list[Value]:
    x = kernel.loaded(op.operation.operands[0])
    return [views.unpack(x, integer(op, "dim"), integer(op, "at"), integer(op, "size"))]

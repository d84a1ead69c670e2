"""Ops that put values side by side in one tensor: concat and pad, without a copy of the whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import integer, integers, scalar, text
from metadef.symbolic import Dim, same

from . import views
from .expression import (
    Constant,
    Expr,
    Extract,
    Value,
    apply,
    boolean,
    dim_exprs,
    index,
    size,
)
from .kernel import Kernel, result_type, tensor_value


def lower_concat(kernel: Kernel, op: Any) -> list[Value]:
    """One generic an operand, each into its slice of the result."""
    dims, element = result_type(op)
    dim = integer(op, "dim")
    result = op.operation.results[0]
    tensor = kernel.plain_destination(result, dims, element)
    start = Dim.of(0)
    for operand in op.operation.operands:
        part = kernel.value(operand)
        starts = [start if i == dim else Dim.of(0) for i in range(len(dims))]
        tensor = write_part(kernel, part, tensor, starts, [1] * len(dims))
        start = start + part.dims[dim]
    return [tensor_value(tensor, dims, element)]


def write_part(
    kernel: Kernel, part: Value, tensor: ir.Value, starts: Sequence[Dim], steps: Sequence[int]
) -> ir.Value:
    """Compute `part` into the slice of `tensor` at `starts`; return the new tensor."""
    if any(same(d, 0) for d in part.dims):
        return tensor
    target = kernel.extract_slice(tensor, starts, part.dims, steps)
    (written,) = kernel.compute([part], [(target, dim_exprs(len(part.dims)))])
    return kernel.insert_slice(written, tensor, starts, part.dims, steps)


def lower_pad(kernel: Kernel, op: Any) -> list[Value]:
    """constant: a fill and a copy into the inside; the other modes read at computed indices."""
    x, result = op.operation.operands[0], op.operation.results[0]
    low, high = integers(op, "low"), integers(op, "high")
    mode = text(op, "mode")
    if mode == "constant":
        number = scalar(op, "value")
        return [pad_constant(kernel, kernel.value(x), low, high, number, result)]
    tensor, value = kernel.stored(x)
    dims, element = result_type(op)
    indices = []
    for i, (before, extent) in enumerate(zip(low, value.dims, strict=True)):
        if mode == "circular":
            indices.append(_circular(i, before, high[i], extent))
            continue
        position: Expr = index(ir.AffineExpr.get_dim(i) - before)
        changed = before != 0 or high[i] != 0
        indices.append(_INSIDE[mode](position, size(extent)) if changed else position)
    return [Value(dims, Extract(element, tensor, tuple(indices)))]


def pad_constant(
    kernel: Kernel,
    value: Value,
    low: Sequence[int],
    high: Sequence[int],
    number: int | float | bool,
    result: ir.Value | None = None,
    steps: Sequence[int] | None = None,
) -> Value:
    """Return `value` in a tensor of `number`, after `low` and before `high` elements of each dim.

    Negative ones cut off. With `steps`, elements are that far apart.
    """
    for i, (before, after) in enumerate(zip(low, high, strict=True)):
        cut_low, cut_high = max(-before, 0), max(-after, 0)
        if cut_low or cut_high:
            extent = value.dims[i] - (cut_low + cut_high)
            value = views.slice_dim(kernel, value, i, Dim.of(cut_low), 1, extent)
    starts = [Dim.of(max(before, 0)) for before in low]
    steps = list(steps) if steps is not None else [1] * len(low)
    dims = [
        start + (d - 1) * step + 1 + max(after, 0)
        for start, d, step, after in zip(starts, value.dims, steps, high, strict=True)
    ]
    if max(*low, *high, *(s - 1 for s in steps), 0) == 0:
        return value
    tensor = kernel.plain_destination(result, dims, value.element)
    tensor = kernel.fill(tensor, value.element, number)
    tensor = write_part(kernel, value, tensor, starts, steps)
    return tensor_value(tensor, dims, value.element)


def _zero() -> Constant:
    return Constant(ir.IndexType.get(), 0)


def _reflect(position: Expr, extent: Expr) -> Expr:
    """-1, -2 read 1, 2 and n, n + 1 read n - 2, n - 3."""
    last = apply("sub", extent, Constant(ir.IndexType.get(), 1))
    right = apply("sub", last, apply("abs", apply("sub", position, last)))
    inside = apply("lt", position, extent, element=boolean())
    return apply("select", inside, apply("abs", position), right)


def _replicate(position: Expr, extent: Expr) -> Expr:
    last = apply("sub", extent, Constant(ir.IndexType.get(), 1))
    return apply("maximum", apply("minimum", position, last), _zero())


def _circular(axis: int, low: int, high: int, extent: Dim) -> Expr:
    """What is cut off at either end is cut off before the rest goes round."""
    position = index(ir.AffineExpr.get_dim(axis) - max(low, 0))
    if low == 0 == high:
        return position
    cut_low, cut_high = max(-low, 0), max(-high, 0)
    inside = apply("remainder", position, size(extent - (cut_low + cut_high)))
    return apply("add", inside, Constant(ir.IndexType.get(), cut_low)) if cut_low else inside


_INSIDE: dict[str, Callable[[Expr, Expr], Expr]] = {
    "reflect": _reflect,
    "replicate": _replicate,
}

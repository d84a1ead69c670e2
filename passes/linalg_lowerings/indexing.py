"""take and gather: loads at computed indices, inside the body of whoever reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import integer

from .expression import (
    Constant,
    Expr,
    Extract,
    Load,
    Value,
    index,
    substitute,
    wrapped_index,
)
from .kernel import Kernel, result_type


def lower_take(kernel: Kernel, op: Any) -> list[Value]:
    """`x[a.., indices[i..], b..]`."""
    x, indices = op.operation.operands
    dims, _ = result_type(op)
    dim = integer(op, "dim")
    value = kernel.value(indices)
    count = len(value.dims)
    loops = [ir.AffineExpr.get_dim(i) for i in range(len(dims))]
    chosen = substitute(value.expr, loops[dim : dim + count], len(dims))
    before = [index(e) for e in loops[:dim]]
    after = [index(e) for e in loops[dim + count :]]
    extent = kernel.value(x).dims[dim]
    return [Value(dims, read_at(kernel, x, [*before, wrapped_index(chosen, extent), *after]))]


def lower_gather(kernel: Kernel, op: Any) -> list[Value]:
    """`x[.., indices[.., i, ..], ..]`."""
    x, indices = op.operation.operands
    dims, _ = result_type(op)
    dim = integer(op, "dim")
    positions: list[Expr] = [index(ir.AffineExpr.get_dim(i)) for i in range(len(dims))]
    positions[dim] = wrapped_index(kernel.value(indices).expr, kernel.value(x).dims[dim])
    return [Value(dims, read_at(kernel, x, positions))]


def read_at(kernel: Kernel, old: ir.Value, positions: Sequence[Expr]) -> Extract:
    """Return a value read at computed positions (inside its bounds), from memory."""
    value = kernel.value(old)
    if not isinstance(value.expr, Load) or not all(
        isinstance(e, (ir.AffineDimExpr, ir.AffineConstantExpr)) for e in value.expr.map
    ):
        kernel.stored(old)
        value = kernel.value(old)
    load = value.expr
    assert isinstance(load, Load)
    where = [
        positions[e.position]
        if isinstance(e, ir.AffineDimExpr)
        else Constant(ir.IndexType.get(), e.value)
        for e in load.map
    ]
    return Extract(load.element, load.tensor, tuple(where))

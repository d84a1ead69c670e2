"""scatter and index_put: a copy of x, then a scalar loop that writes the updates in order.

What puts one element at most along each line of x, as a cache of keys takes those of a token, is a
choice between x and the update instead: an expression, which all threads evaluate.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, integers, text
from metadef.dialects.metadef.ops.index_put import indexed_dims
from metadef.dialects.metadef.shapes import Shaped
from metadef.symbolic import Dim, product

from . import scalar
from .expression import (
    Expr,
    Value,
    apply,
    constant_expr,
    dim_exprs,
    index,
    substitute,
    substitute_all,
    wrapped_index,
)
from .expression import boolean as i1
from .kernel import Kernel, broadcast, compute_type, result_type, tensor_value
from .loops import nest, read, write

_COMBINE = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def lower_scatter(kernel: Kernel, op: Any) -> list[Value]:
    """`result[.., indices[.., i, ..], ..] = updates[.., i, ..]` for every position of indices."""
    x, indices, updates = (kernel.value(v) for v in op.operation.operands)
    dim, how = integer(op, "dim"), text(op, "reduce")
    combine = None if how == "none" else _COMBINE[how]
    line = tuple(Dim.of(1) if i == dim else d for i, d in enumerate(x.dims))
    if indices.dims == line:
        first = [e if i != dim else constant_expr(0) for i, e in enumerate(dim_exprs(len(line)))]
        place, update = substitute_all([indices.expr, updates.expr], first, len(line))
        return [_one_chosen(x, {dim: place}, update, combine)]
    positions: list[Expr] = [index(e) for e in dim_exprs(len(x.dims))]
    positions[dim] = wrapped_index(indices.expr, x.dims[dim])
    return [_write_updates(kernel, op, x, indices.dims, positions, updates.expr, combine)]


def lower_index_put(kernel: Kernel, op: Any) -> list[Value]:
    """Loops over the indexed shape; positions of the other dims are the loops themselves."""
    x, updates, *indices = (kernel.value(v) for v in op.operation.operands)
    dims = integers(op, "dims")
    shaped = [Shaped(v.dims, v.element) for v in indices]
    target = indexed_dims(Shaped(x.dims, x.element), shaped, dims)
    together = len(target) - (len(x.dims) - len(dims))
    adjacent = dims == list(range(dims[0], dims[0] + len(dims)))
    first = dims[0] if adjacent else 0
    combine = "add" if boolean(op, "accumulate") else None
    values = broadcast(updates, target)
    if product(target[first : first + together]) == Dim.of(1):
        return [_one_slice_chosen(x, dict(zip(dims, indices, strict=True)), values, first, combine)]
    loops = dim_exprs(len(target))
    inner, rest = loops[first : first + together], [*loops[:first], *loops[first + together :]]
    positions: list[Expr] = []
    for i, extent in enumerate(x.dims):
        if i in dims:
            value = broadcast(indices[dims.index(i)], target[first : first + together])
            positions.append(wrapped_index(substitute(value.expr, inner, len(target)), extent))
        else:
            positions.append(index(rest.pop(0)))
    return [_write_updates(kernel, op, x, target, positions, values.expr, combine)]


def _one_slice_chosen(
    x: Value, indices: dict[int, Value], updates: Value, first: int, combine: str | None
) -> Value:
    """Put one slice where the single elements of `indices`, one for each of some dims, say.

    `updates` has the other dims of x, with dims of 1 before number `first` of them.
    """
    rank, zero = len(x.dims), constant_expr(0)
    others = [e for i, e in enumerate(dim_exprs(rank)) if i not in indices]
    ones = [zero] * (len(updates.dims) - len(others))
    update = substitute(updates.expr, [*others[:first], *ones, *others[first:]], rank)
    places = {d: substitute(v.expr, [zero] * len(v.dims), rank) for d, v in indices.items()}
    return _one_chosen(x, places, update, combine)


def _one_chosen(x: Value, places: dict[int, Expr], update: Expr, combine: str | None) -> Value:
    """Return x, but the update where each dim of `places` is at its place."""
    hits = [
        apply("eq", index(dim_exprs(len(x.dims))[d]), wrapped_index(place, x.dims[d]), element=i1())
        for d, place in places.items()
    ]
    hit = reduce(partial(apply, "and"), hits)
    put = update if combine is None else apply(combine, x.expr, update)
    return Value(x.dims, apply("select", hit, put, x.expr))


def _write_updates(
    kernel: Kernel,
    op: Any,
    x: Value,
    space: tuple[Any, ...],
    positions: list[Expr],
    updates: Expr,
    combine: str | None,
) -> Value:
    dims, element = result_type(op)
    target = kernel.plain_destination(op.operation.results[0], dims, element)
    (copied,) = kernel.compute([x], [(target, dim_exprs(len(dims)))])

    def body(loops: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        *at, value = kernel.evaluate([*positions, updates], {}, loops)
        if combine is not None:
            old = read(kernel, tensors[0], at, element)
            value = scalar.apply(kernel.scalars(), combine, [old, value], element, element)
            assert value.type == compute_type(element)
        return [write(kernel, value, tensors[0], at, element)]

    (tensor,) = nest(kernel, [kernel.size(d) for d in space], [copied], body)
    return tensor_value(tensor, dims, element)

"""scatter and index_put: a copy of x, then a scalar loop that writes the updates in order."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, integers, text
from metadef.dialects.metadef.ops.index_put import indexed_dims
from metadef.dialects.metadef.shapes import Shaped

from . import scalar
from .expression import Expr, Value, dim_exprs, index, substitute, wrapped_index
from .kernel import Kernel, broadcast, compute_type, result_type, tensor_value
from .loops import nest, read, write

_COMBINE = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}


def lower_scatter(kernel: Kernel, op: Any) -> list[Value]:
    """`result[.., indices[.., i, ..], ..] = updates[.., i, ..]` for every position of indices."""
    x, indices, updates = (kernel.value(v) for v in op.operation.operands)
    dim, reduce = integer(op, "dim"), text(op, "reduce")
    positions: list[Expr] = [index(e) for e in dim_exprs(len(x.dims))]
    positions[dim] = wrapped_index(indices.expr, x.dims[dim])
    combine = None if reduce == "none" else _COMBINE[reduce]
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
    loops = dim_exprs(len(target))
    inner, rest = loops[first : first + together], [*loops[:first], *loops[first + together :]]
    positions: list[Expr] = []
    for i, extent in enumerate(x.dims):
        if i in dims:
            value = broadcast(indices[dims.index(i)], target[first : first + together])
            positions.append(wrapped_index(substitute(value.expr, inner, len(target)), extent))
        else:
            positions.append(index(rest.pop(0)))
    combine = "add" if boolean(op, "accumulate") else None
    values = broadcast(updates, target).expr
    return [_write_updates(kernel, op, x, target, positions, values, combine)]


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

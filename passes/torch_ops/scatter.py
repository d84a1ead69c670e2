"""Writing by index: scatter, index_put and their relatives."""

from __future__ import annotations

from collections.abc import Sequence

from metadef import ir
from metadef.dialects.metadef.ops.index_put import index_put as build_index_put
from metadef.dialects.metadef.ops.scan import scan
from metadef.dialects.metadef.ops.scatter import scatter as build_scatter
from metadef.dialects.metadef.ops.take import take
from metadef.dialects.metadef.shapes import broadcast_dims
from metadef.symbolic import Dim, product

from . import build
from .build import as_element, cast, dims, pointwise, rank, reshape
from .call import Call, Number, Tensor
from .dtypes import (
    bool_type,
    float_range,
    i64,
    integer_range,
    is_bool,
    is_float,
    opmath,
)
from .index import from_front, indexed
from .registry import NotModelled, converts

_REDUCES = {
    "add": "add",
    "multiply": "mul",
    "sum": "add",
    "prod": "mul",
    "amax": "max",
    "amin": "min",
}


def _at_least_vectors(*xs: ir.Value) -> list[ir.Value]:
    return [reshape(x, [1]) if rank(x) == 0 else x for x in xs]


def _scatter(x: ir.Value, dim: int, indices: ir.Value, updates: ir.Value, reduce: str) -> ir.Value:
    """Scatter, rank-0 tensors taken as vectors of one; bools are or-ed as bytes."""
    size = dims(x)
    x, indices, updates = _at_least_vectors(x, indices, updates)
    result = build_scatter(x, indices, updates, dim % rank(x), reduce)
    return reshape(result, size)


@converts("aten.scatter.src")
def scatter_source(
    call: Call, x: ir.Value, dim: int, indices: ir.Value, source: ir.Value
) -> ir.Value:
    return _scatter(x, dim, indices, source, "none")


@converts("aten.scatter.value")
def scatter_value(call: Call, x: ir.Value, dim: int, indices: ir.Value, value: Number) -> ir.Value:
    updates = build.broadcast(as_element(value, call.element), dims(indices))
    return _scatter(x, dim, indices, updates, "none")


@converts("aten.scatter.reduce", "aten.scatter.value_reduce")
def scatter_reduced(
    call: Call, x: ir.Value, dim: int, indices: ir.Value, source: Tensor, reduce: str
) -> ir.Value:
    updates = as_element(source, call.element)
    if not isinstance(source, ir.Value):
        updates = build.broadcast(updates, dims(indices))
    if is_bool(call.element):
        raise NotModelled
    return _scatter(x, dim, indices, updates, _REDUCES[reduce])


@converts("aten.scatter_add")
def scatter_add(call: Call, x: ir.Value, dim: int, indices: ir.Value, source: ir.Value) -> ir.Value:
    if is_bool(call.element):
        return _scatter(x, dim, indices, source, "max")
    return _scatter(x, dim, indices, source, "add")


@converts("aten.scatter_reduce.two")
def scatter_reduce(
    call: Call,
    x: ir.Value,
    dim: int,
    indices: ir.Value,
    source: ir.Value,
    reduce: str,
    include_self: bool,
) -> ir.Value:
    if is_bool(call.element):
        raise NotModelled
    return _scatter_reduced(call, x, dim, indices, source, reduce, include_self)


def _scatter_reduced(
    call: Call,
    x: ir.Value,
    dim: int,
    indices: ir.Value,
    source: ir.Value,
    reduce: str,
    include_self: bool,
) -> ir.Value:
    """Without the element itself, it is first replaced by the reduction's neutral value."""
    base = x
    if not include_self:
        base = _scatter(x, dim, indices, _neutral(call, indices, reduce), "none")
    if reduce != "mean":
        return _scatter(base, dim, indices, source, _REDUCES[reduce])
    wide = opmath(call.element)
    total = _scatter(cast(base, wide), dim, indices, cast(source, wide), "add")
    one = build.fill(dims(indices), 1, wide)
    start = build.fill(dims(x), 1 if include_self else 0, wide)
    count = _scatter(start, dim, indices, one, "add")
    count = pointwise("maximum", count, build.number(1, wide))
    fn = "div" if is_float(call.element) else "floordiv"
    return cast(pointwise(fn, total, count), call.element)


def _neutral(call: Call, indices: ir.Value, reduce: str) -> ir.Value:
    element = call.element
    low, high = float_range(element) if is_float(element) else integer_range(element)
    value = {"sum": 0, "mean": 0, "prod": 1, "amax": low, "amin": high}[reduce]
    return build.fill(dims(indices), value, element)


@converts("aten.index_put", "aten._unsafe_index_put", "aten.index_put.hacked_twin")
@converts("aten._unsafe_index_put.hacked_twin", "aten._index_put_impl")
@converts("aten._index_put_impl.hacked_twin")
def index_put(
    call: Call,
    x: ir.Value,
    indices: Sequence[ir.Value | None],
    values: Tensor,
    accumulate: bool,
    unsafe: bool = False,
) -> ir.Value:
    """A mask of x's own leading dims with one value selects; other masks are for torch-mlir."""
    updates = as_element(values, call.element)
    chosen = [t for t in indices if t is not None]
    mask = chosen[0] if len(chosen) == 1 else None
    if mask is not None and is_bool(build.element(mask)):
        return _masked_put(call, x, indices, mask, updates, accumulate)
    where, tensors = indexed(x, indices)
    if accumulate and is_bool(call.element):
        raise NotModelled
    return build_index_put(x, updates, tensors, where, accumulate)


def _masked_put(
    call: Call,
    x: ir.Value,
    indices: Sequence[ir.Value | None],
    mask: ir.Value,
    updates: ir.Value,
    accumulate: bool,
) -> ir.Value:
    at = list(indices).index(mask)
    trailing = rank(x) - at - rank(mask)
    # The update must not depend on which element of the mask is meant.
    varies = rank(updates) > trailing and not build.is_one(
        dims(updates)[: rank(updates) - trailing]
    )
    if varies or is_bool(call.element) and accumulate:
        raise NotModelled
    spread = reshape(mask, [*dims(mask), *[1] * trailing])
    if rank(updates) > trailing:
        updates = reshape(updates, dims(updates)[rank(updates) - trailing :])
    put = pointwise("add", x, updates) if accumulate else updates
    return build.broadcast(pointwise("select", spread, put, x), dims(x))


@converts("aten.index_add")
def index_add(
    call: Call, x: ir.Value, dim: int, indices: ir.Value, source: ir.Value, alpha: Number
) -> ir.Value:
    if is_bool(call.element):
        raise NotModelled
    if alpha != 1:
        source = pointwise("mul", source, build.number(alpha, call.element))
    return _index_along(x, dim, indices, source, accumulate=True)


def _index_along(
    x: ir.Value, dim: int, indices: ir.Value, source: ir.Value, accumulate: bool
) -> ir.Value:
    """Put the slices of source at `indices` of `dim`."""
    size = dims(x)
    x, indices, source = _at_least_vectors(x, indices, source)
    dim %= rank(x)
    wide = [*dims(x)[:dim], dims(indices)[0], *dims(x)[dim + 1 :]]
    updates = build.broadcast(reshape(source, wide) if rank(source) != rank(x) else source, wide)
    return reshape(build_index_put(x, updates, [indices], [dim], accumulate), size)


@converts("aten.index_copy")
def index_copy(call: Call, x: ir.Value, dim: int, indices: ir.Value, source: ir.Value) -> ir.Value:
    return _index_along(x, dim, indices, source, accumulate=False)


@converts("aten.index_fill.int_Scalar", "aten.index_fill.int_Tensor")
def index_fill(call: Call, x: ir.Value, dim: int, indices: ir.Value, value: Tensor) -> ir.Value:
    """Select by whether any index names the position."""
    if rank(x) == 0:
        return as_element(value, call.element)
    dim %= rank(x)
    flat = reshape(indices, [product(dims(indices))])
    size = dims(x)[dim]
    marks = build_scatter(
        build.fill([size], 0, build.element(flat)),
        flat,
        build.fill(dims(flat), 1, build.element(flat)),
        0,
    )
    hit = build.along(cast(marks, bool_type()), dim, rank(x))
    return pointwise("select", hit, as_element(value, call.element), x)


@converts("aten.index_reduce")
def index_reduce(
    call: Call,
    x: ir.Value,
    dim: int,
    indices: ir.Value,
    source: ir.Value,
    reduce: str,
    include_self: bool,
) -> ir.Value:
    if is_bool(call.element):
        raise NotModelled
    size = dims(x)
    x, indices, source = _at_least_vectors(x, indices, source)
    dim %= rank(x)
    spread = build.broadcast(build.along(indices, dim, rank(x)), dims(source))
    result = _scatter_reduced(call, x, dim, spread, source, reduce, include_self)
    return reshape(result, size)


@converts("aten.put")
def put(call: Call, x: ir.Value, indices: ir.Value, source: ir.Value, accumulate: bool) -> ir.Value:
    if is_bool(call.element) and accumulate:
        raise NotModelled
    count = [product(dims(indices))]
    flat = reshape(x, [product(dims(x))])
    at = from_front(reshape(indices, count), product(dims(x)))
    result = build_scatter(flat, at, reshape(source, count), 0, "add" if accumulate else "none")
    return reshape(result, dims(x))


@converts("aten.masked_scatter")
def masked_scatter(call: Call, x: ir.Value, mask: ir.Value, source: ir.Value) -> ir.Value:
    """The n-th true element of the mask takes source's n-th element."""
    x = build.broadcast(x, broadcast_dims(dims(x), dims(mask)))
    if product(dims(source)) == Dim.of(0):
        return x
    wide = build.broadcast(mask, dims(x))
    count = [product(dims(x))]
    kept = cast(reshape(wide, count), i64())
    nth = pointwise("sub", scan("sum", kept, 0), build.number(1, i64()))
    nth = pointwise("maximum", nth, build.number(0, i64()))
    last = build.number(product(dims(source)) - 1, i64())
    picked = take(reshape(source, [product(dims(source))]), pointwise("minimum", nth, last), 0)
    return pointwise("select", wide, reshape(picked, dims(x)), x)

"""Reading by index: embedding, gather, advanced indexing, sorting and searching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.gather import gather as build_gather
from metadef.dialects.metadef.ops.sort import sort as build_sort
from metadef.dialects.metadef.ops.take import take
from metadef.dialects.metadef.shapes import broadcast_dims
from metadef.symbolic import Dim, product

from . import build
from .build import cast, common, dims, pointwise, rank, reduce, reshape, slice_, transpose
from .call import Call, Tensor
from .dtypes import i32, i64, is_bool, is_float
from .registry import NotModelled, converts


@converts("aten.embedding")
def embedding(
    call: Call, weight: ir.Value, indices: ir.Value, padding: int, scale: bool, sparse: bool
) -> ir.Value:
    return take(weight, indices, 0)


@converts("aten.index_select")
def index_select(call: Call, x: ir.Value, dim: int, indices: ir.Value) -> ir.Value:
    if rank(x) == 0:
        return x
    return take(x, reshape(indices, [product(dims(indices))]), dim % rank(x))


@converts("aten.gather")
def gather(call: Call, x: ir.Value, dim: int, indices: ir.Value, sparse_grad: bool) -> ir.Value:
    if rank(x) == 0:
        return build.broadcast(x, dims(indices))
    if any(build.is_zero(d) for d in dims(indices)):
        return build.fill(dims(indices), 0, call.element)
    indices = cast(indices, i64())
    if rank(indices) == 0:
        indices = reshape(indices, [1])
        return reshape(build_gather(x, indices, 0), [])
    return build_gather(x, indices, dim % rank(x))


@converts("aten.take_along_dim")
def take_along_dim(call: Call, x: ir.Value, indices: ir.Value, dim: int | None) -> ir.Value:
    if dim is None:
        flat = reshape(indices, [product(dims(indices))])
        return build_gather(reshape(x, [product(dims(x))]), flat, 0)
    dim %= rank(x)
    size = list(broadcast_dims(_without(dims(x), dim), _without(dims(indices), dim)))
    wide = [*size[:dim], dims(x)[dim], *size[dim:]]
    wanted = [*size[:dim], dims(indices)[dim], *size[dim:]]
    return build_gather(build.broadcast(x, wide), build.broadcast(indices, wanted), dim)


def _without(size: tuple[Dim, ...], dim: int) -> tuple[Dim, ...]:
    return (*size[:dim], *size[dim + 1 :])


@converts("aten.take")
def take_flat(call: Call, x: ir.Value, indices: ir.Value) -> ir.Value:
    return take(reshape(x, [product(dims(x))]), indices, 0)


def indexed(x: ir.Value, indices: Sequence[ir.Value | None]) -> tuple[list[int], list[ir.Value]]:
    """Return the indexed dims and their index tensors; a mask is for torch-mlir."""
    chosen = [(i, t) for i, t in enumerate(indices) if t is not None]
    for _, index in chosen:
        if is_bool(build.element(index)):
            raise NotModelled
    return [i for i, _ in chosen], [t for _, t in chosen]


@converts("aten.index.Tensor", "aten._unsafe_index.Tensor", "aten.index.Tensor_hacked_twin")
def index(call: Call, x: ir.Value, indices: Sequence[ir.Value | None]) -> ir.Value:
    """Merge the indexed dims into one and take it at the linear index.

    As numpy: the index's dims stand where the indexed ones were if those are next to each other,
    and come first otherwise.
    """
    where, tensors = indexed(x, indices)
    if not where:
        return x
    if len(where) == 1:
        return take(x, _wide(tensors[0]), where[0])
    together = where == list(range(where[0], where[-1] + 1))
    if not together:
        rest = [i for i in range(rank(x)) if i not in where]
        x = transpose(x, [*where, *rest])
        where = list(range(len(where)))
    first, last = where[0], where[-1]
    size = dims(x)
    merged = reshape(x, [*size[:first], product(size[first : last + 1]), *size[last + 1 :]])
    return take(merged, linear_index(tensors, size[first : last + 1]), first)


def _wide(index_values: ir.Value) -> ir.Value:
    """Return an index in i64, or in i32 if it is that."""
    of = build.element(index_values)
    return index_values if of in (i32(), i64()) else cast(index_values, i64())


def from_front(index_values: ir.Value, size: Dim) -> ir.Value:
    """Return an index in i64 counted from the front."""
    at = cast(index_values, i64())
    wrapped = pointwise("add", at, build.number(size, i64()))
    return pointwise("select", pointwise("lt", at, build.number(0, i64())), wrapped, at)


def linear_index(indices: Sequence[ir.Value], size: Sequence[Dim]) -> ir.Value:
    """Return the row-major position in `size` that index tensors, one a dim, name together."""
    total: ir.Value | None = None
    for index_values, d in zip(indices, size, strict=True):
        at = from_front(index_values, d)
        if total is None:
            total = at
        else:
            total = pointwise("add", pointwise("mul", total, build.number(d, i64())), at)
    assert total is not None, "an index without tensors"
    return total


@converts("aten.sort", "aten.sort.stable")
def sort(call: Call, x: ir.Value, *options: Any) -> tuple[ir.Value, ir.Value]:
    dim, descending = options[-2:]
    if rank(x) == 0:
        return x, build.fill([], 0, i64())
    return build_sort(x, dim, bool(descending), True)


@converts("aten.argsort", "aten.argsort.stable")
def argsort(call: Call, x: ir.Value, *options: Any) -> ir.Value:
    return sort(call, x, *options)[1]


@converts("aten.msort")
def msort(call: Call, x: ir.Value) -> ir.Value:
    return sort(call, x, 0, False)[0]


@converts("aten.topk")
def topk(
    call: Call, x: ir.Value, count: Any, dim: int, largest: bool, ordered: bool
) -> tuple[ir.Value, ir.Value]:
    """The first k of the sorted dim."""
    if rank(x) == 0:
        return x, build.fill([], 0, i64())
    dim %= rank(x)
    values, indices = build_sort(x, dim, largest, True)
    return slice_(values, dim, 0, count), slice_(indices, dim, 0, count)


@converts("aten.kthvalue")
def kthvalue(call: Call, x: ir.Value, k: int, dim: int, keepdim: bool) -> tuple[ir.Value, ir.Value]:
    if rank(x) == 0:
        return x, build.fill([], 0, i64())
    dim %= rank(x)
    values, indices = build_sort(x, dim, False, True)
    return _at(values, dim, k - 1, keepdim), _at(indices, dim, k - 1, keepdim)


def _at(x: ir.Value, dim: int, position: Any, keepdim: bool) -> ir.Value:
    kept = slice_(x, dim, position, 1)
    return kept if keepdim else reshape(kept, _without(dims(x), dim))


@converts("aten.median.dim")
def median_dim(call: Call, x: ir.Value, dim: int, keepdim: bool) -> tuple[ir.Value, ir.Value]:
    """The lower of two middle elements; NaN, sorted last, is the median if there is one."""
    if rank(x) == 0:
        return x, build.fill([], 0, i64())
    dim %= rank(x)
    values, indices = build_sort(x, dim, False, True)
    middle = (dims(x)[dim] - 1) // 2
    value, at = _at(values, dim, middle, keepdim), _at(indices, dim, middle, keepdim)
    if not is_float(build.element(x)):
        return value, at
    last = dims(x)[dim] - 1
    is_nan = pointwise("isnan", _at(values, dim, last, keepdim))
    greatest = _at(values, dim, last, keepdim)
    first_nan = reduce("argmax", x, [dim], keepdim)
    return pointwise("select", is_nan, greatest, value), pointwise("select", is_nan, first_nan, at)


@converts("aten.median")
def median(call: Call, x: ir.Value) -> ir.Value:
    return median_dim(call, reshape(x, [product(dims(x))]), 0, False)[0]


@converts("aten.bucketize.Tensor")
def bucketize(
    call: Call, x: Tensor, boundaries: ir.Value, out_int32: bool, right: bool
) -> ir.Value:
    """The number of boundaries below x (or not above it): a comparison with each, counted."""
    if not isinstance(x, ir.Value):
        raise NotModelled
    values, edges = common(x, boundaries)
    below = pointwise("le" if right else "lt", edges, build.unsqueeze(values, rank(values)))
    return reduce("sum", cast(below, call.element), [rank(values)])


@converts("aten.searchsorted.Tensor", "aten.searchsorted.Scalar")
def searchsorted(
    call: Call,
    sequence: ir.Value,
    x: Tensor,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: ir.Value | None,
) -> ir.Value:
    """As bucketize, row by row: sequence [.., N], x [.., M] or a number."""
    if sorter is not None:
        sequence = build_gather(sequence, sorter, rank(sequence) - 1)
    values, edges = common(x, sequence)
    if rank(edges) > 1:
        edges = build.unsqueeze(edges, rank(edges) - 1)
    from_right = right or side == "right"
    below = pointwise("le" if from_right else "lt", edges, build.unsqueeze(values, rank(values)))
    return reduce("sum", cast(below, call.element), [rank(values)])


@converts("aten.nanmedian.dim")
def nanmedian_dim(call: Call, x: ir.Value, dim: int, keepdim: bool) -> tuple[ir.Value, ir.Value]:
    """The lower middle of what is not NaN, which is sorted last."""
    if rank(x) == 0 or not is_float(build.element(x)):
        return median_dim(call, x, dim, keepdim)
    dim %= rank(x)
    values, indices = build_sort(x, dim, False, True)
    valid = cast(pointwise("not", pointwise("isnan", x)), i64())
    count = reduce("sum", valid, [dim], keepdim=True)
    last = pointwise("sub", count, build.number(1, i64()))
    middle = pointwise("floordiv", last, build.number(2, i64()))
    middle = pointwise("maximum", middle, build.number(0, i64()))
    picked = build_gather(values, middle, dim), build_gather(indices, middle, dim)
    if keepdim:
        return picked
    kept = _without(dims(x), dim)
    return reshape(picked[0], kept), reshape(picked[1], kept)


@converts("aten.nanmedian")
def nanmedian(call: Call, x: ir.Value) -> ir.Value:
    return nanmedian_dim(call, reshape(x, [product(dims(x))]), 0, False)[0]


@converts("aten.isin.Tensor_Tensor")
def isin(call: Call, x: ir.Value, others: ir.Value, assume_unique: bool, invert: bool) -> ir.Value:
    values, tests = common(x, others)
    flat = reshape(tests, [product(dims(tests))])
    equal = pointwise("eq", build.unsqueeze(values, rank(values)), flat)
    found = reduce("any", equal, [rank(values)])
    return pointwise("not", found) if invert else found

"""Reductions, their statistics and norms, and running reductions (scans)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.diagnostics import UnsupportedOpError
from metadef.dialects.metadef.ops.scan import scan
from metadef.symbolic import product

from . import build
from .build import as_element, cast, dims, index_dims, pointwise, rank, reduce
from .call import Call, Number
from .dtypes import (
    bool_type,
    f64,
    i64,
    integer_range,
    is_bool,
    is_float,
    opmath,
)
from .registry import NotModelled, converts

Axes = Any


@converts("aten.sum")
def sum_all(call: Call, x: ir.Value, dtype: int | None) -> ir.Value:
    return reduce("sum", cast(x, call.element), index_dims(None, rank(x)))


@converts("aten.sum.dim_IntList")
def sum_dims(call: Call, x: ir.Value, axes: Axes, keepdim: bool, dtype: int | None) -> ir.Value:
    return reduce("sum", cast(x, call.element), index_dims(axes, rank(x)), keepdim)


@converts("aten.nansum")
def nansum(call: Call, x: ir.Value, axes: Axes, keepdim: bool, dtype: int | None) -> ir.Value:
    x = cast(x, call.element)
    if is_float(call.element):
        x = pointwise("select", pointwise("isnan", x), build.number(0, call.element), x)
    return reduce("sum", x, index_dims(axes, rank(x)), keepdim)


@converts("aten.mean")
def mean_all(call: Call, x: ir.Value, dtype: int | None) -> ir.Value:
    return reduce("mean", cast(x, call.element), index_dims(None, rank(x)))


@converts("aten.mean.dim")
def mean_dims(call: Call, x: ir.Value, axes: Axes, keepdim: bool, dtype: int | None) -> ir.Value:
    return reduce("mean", cast(x, call.element), index_dims(axes, rank(x)), keepdim)


@converts("aten.prod")
def prod_all(call: Call, x: ir.Value, dtype: int | None) -> ir.Value:
    return reduce("prod", cast(x, call.element), index_dims(None, rank(x)))


@converts("aten.prod.dim_int")
def prod_dim(call: Call, x: ir.Value, dim: int, keepdim: bool, dtype: int | None) -> ir.Value:
    return reduce("prod", cast(x, call.element), index_dims(dim, rank(x)), keepdim)


@converts("aten.amax", "aten.amin")
def extremum(call: Call, x: ir.Value, axes: Axes, keepdim: bool) -> ir.Value:
    return reduce(_extremum_fn(call), x, index_dims(axes, rank(x)), keepdim)


def _extremum_fn(call: Call) -> str:
    return "max" if "max" in call.name else "min"


@converts("aten.max", "aten.min")
def extremum_all(call: Call, x: ir.Value) -> ir.Value:
    # left to torch, which raises its error
    if any(dim.is_static and dim.value == 0 for dim in dims(x)):
        raise UnsupportedOpError(f"{call.name} of no elements has no value")
    return reduce(_extremum_fn(call), x, index_dims(None, rank(x)))


@converts("aten.max.dim", "aten.min.dim")
def extremum_dim(call: Call, x: ir.Value, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """Values and the index of the first; NaN wins over any value."""
    fn = _extremum_fn(call)
    axes = index_dims(dim, rank(x))
    values = reduce(fn, x, axes, keepdim) if call.used(0) or not call.used(1) else None
    return values, _index_of(fn, x, axes, keepdim) if call.used(1) else None


def _index_of(fn: str, x: ir.Value, axes: list[int], keepdim: bool) -> ir.Value:
    return reduce(f"arg{fn}", x, axes, keepdim) if axes else build.fill([], 0, i64())


@converts("aten.aminmax")
def aminmax(call: Call, x: ir.Value, dim: int | None, keepdim: bool) -> tuple[Any, Any]:
    axes = index_dims(dim, rank(x))
    return reduce("min", x, axes, keepdim), reduce("max", x, axes, keepdim)


@converts("aten.argmax", "aten.argmin")
def argument(call: Call, x: ir.Value, dim: int | None, keepdim: bool) -> ir.Value:
    fn = _extremum_fn(call)
    if dim is not None:
        return _index_of(fn, x, index_dims(dim, rank(x)), keepdim)
    index = _index_of(fn, build.reshape(x, [product(dims(x))]), [0], False)
    return build.reshape(index, [1] * rank(x)) if keepdim else index


@converts("aten.any", "aten.all")
def truth_all(call: Call, x: ir.Value) -> ir.Value:
    return _truth(call, x, None, False)


@converts("aten.any.dim", "aten.all.dim", "aten.any.dims", "aten.all.dims")
def truth_dims(call: Call, x: ir.Value, axes: Axes, keepdim: bool) -> ir.Value:
    if axes == [] and call.name.endswith(".dims"):
        return cast(cast(x, bool_type()), call.element)
    return _truth(call, x, axes, keepdim)


def _truth(call: Call, x: ir.Value, axes: Axes, keepdim: bool) -> ir.Value:
    """uint8 gives uint8, every other type bool."""
    fn = call.name.split(".")[2]
    found = reduce(fn, cast(x, bool_type()), index_dims(axes, rank(x)), keepdim)
    return cast(found, call.element)


@converts("aten.count_nonzero", "aten.count_nonzero.dim_IntList")
def count_nonzero(call: Call, x: ir.Value, axes: Axes) -> ir.Value:
    return reduce("sum", cast(cast(x, bool_type()), i64()), index_dims(axes, rank(x)))


@converts("aten.logsumexp", "aten.special_logsumexp")
def logsumexp(call: Call, x: ir.Value, axes: Axes, keepdim: bool) -> ir.Value:
    wide = cast(x, opmath(call.element))
    return cast(log_sum_exp(wide, index_dims(axes, rank(x)), keepdim), call.element)


def log_sum_exp(x: ir.Value, axes: list[int], keepdim: bool) -> ir.Value:
    """max + log(sum(exp(x - max))), an infinite maximum taken as 0 in the difference."""
    element = build.element(x)
    largest = reduce("max", x, axes, keepdim=True)
    infinite = pointwise("isinf", largest)
    shift = pointwise("select", infinite, build.number(0, element), largest)
    total = reduce("sum", pointwise("exp", pointwise("sub", x, shift)), axes, keepdim=True)
    return _drop(pointwise("add", pointwise("log", total), shift), axes, keepdim)


def _drop(x: ir.Value, axes: Sequence[int], keepdim: bool) -> ir.Value:
    """Return x without `axes`, which are 1, unless they are kept."""
    if keepdim:
        return x
    return build.reshape(x, [d for i, d in enumerate(dims(x)) if i not in axes])


def _moments(
    x: ir.Value, axes: Axes, correction: Number | None, keepdim: bool
) -> tuple[ir.Value, ir.Value]:
    """Return variance and mean in two passes; the divisor is max(n - correction, 0)."""
    of = index_dims(axes, rank(x))
    wide = cast(x, opmath(build.element(x)))
    element = build.element(wide)
    mean = reduce("mean", wide, of, keepdim=True)
    centred = pointwise("sub", wide, mean)
    total = reduce("sum", pointwise("mul", centred, centred), of, keepdim=True)
    count = product([dims(x)[i] for i in of])
    removed = 1 if correction is None else correction
    if not isinstance(removed, int | float):
        raise NotModelled
    if count.is_static:
        divisor = build.number(float(max(count.value - removed, 0)), element)
    else:
        size = pointwise("sub", build.number(count, f64()), build.number(removed, f64()))
        divisor = cast(pointwise("maximum", size, build.number(0, f64())), element)
    variance = pointwise("div", total, divisor)
    return (
        cast(_drop(variance, of, keepdim), build.element(x)),
        cast(_drop(mean, of, keepdim), build.element(x)),
    )


def _spread(call: Call, x: ir.Value, axes: Axes, correction: Any, keepdim: bool) -> Any:
    """Return var or std, with the mean for `var_mean` and `std_mean`."""
    variance, mean = _moments(x, axes, correction, keepdim)
    kind = call.name.split(".")[2]
    spread = pointwise("sqrt", variance) if kind.startswith("std") else variance
    return (spread, mean) if kind.endswith("mean") else spread


@converts("aten.var.correction", "aten.std.correction")
@converts("aten.var_mean.correction", "aten.std_mean.correction")
def spread_correction(call: Call, x: ir.Value, axes: Axes, correction: Any, keepdim: bool) -> Any:
    return _spread(call, x, axes, correction, keepdim)


@converts("aten.var.dim", "aten.std.dim", "aten.var_mean.dim", "aten.std_mean.dim")
def spread_dims(call: Call, x: ir.Value, axes: Axes, unbiased: bool, keepdim: bool) -> Any:
    return _spread(call, x, axes, int(unbiased), keepdim)


@converts("aten.var", "aten.std", "aten.var_mean", "aten.std_mean")
def spread_all(call: Call, x: ir.Value, unbiased: bool) -> Any:
    return _spread(call, x, None, int(unbiased), False)


@converts("prims.var")
def prims_var(call: Call, x: ir.Value, axes: Axes, correction: Any, dtype: Any) -> ir.Value:
    return _moments(x, axes, correction, False)[0]


@converts("aten.linalg_vector_norm")
def vector_norm(
    call: Call, x: ir.Value, order: Number, axes: Axes, keepdim: bool, dtype: int | None
) -> ir.Value:
    return _norm(call, x, order, axes, keepdim)


@converts("aten.norm.ScalarOpt_dim", "aten.norm.ScalarOpt_dim_dtype")
def norm_dims(
    call: Call, x: ir.Value, order: Number | None, axes: Axes, keepdim: bool, *dtype: Any
) -> ir.Value:
    return _norm(call, x, 2 if order is None else order, axes, keepdim)


@converts("aten.norm.Scalar", "aten.norm.ScalarOpt_dtype")
def norm_all(call: Call, x: ir.Value, order: Number | None, *dtype: Any) -> ir.Value:
    return _norm(call, x, 2 if order is None else order, None, False)


@converts("aten.frobenius_norm.dim")
def frobenius(call: Call, x: ir.Value, axes: Axes, keepdim: bool) -> ir.Value:
    return _norm(call, x, 2, axes, keepdim)


def _norm(call: Call, x: ir.Value, order: Any, axes: Axes, keepdim: bool) -> ir.Value:
    return norm_value(x, order, index_dims(axes, rank(x)), keepdim, call.element)


def norm_value(
    x: ir.Value, order: Any, axes: list[int], keepdim: bool, element: ir.Type
) -> ir.Value:
    """Return the p-norm over `axes` in `element`; order 0 counts, infinite ones are extremes."""
    if not isinstance(order, int | float):
        raise NotModelled
    wide = as_element(x, opmath(element))
    of = build.element(wide)
    size = pointwise("abs", wide)
    if order == math.inf:
        value = reduce("max", size, axes, keepdim)
    elif order == -math.inf:
        value = reduce("min", size, axes, keepdim)
    elif order == 0:
        nonzero = pointwise("ne", wide, build.number(0, of))
        value = reduce("sum", cast(nonzero, of), axes, keepdim)
    elif order == 1:
        value = reduce("sum", size, axes, keepdim)
    elif order == 2:
        value = pointwise("sqrt", reduce("sum", pointwise("mul", wide, wide), axes, keepdim))
    else:
        powered = pointwise("pow", size, build.number(float(order), of))
        total = reduce("sum", powered, axes, keepdim)
        value = pointwise("pow", total, build.number(1.0 / order, of))
    return cast(value, element)


@converts("aten.cumsum", "aten.cumprod")
def cumulative(call: Call, x: ir.Value, dim: int, dtype: int | None) -> ir.Value:
    x = cast(x, call.element)
    if rank(x) == 0:
        return x
    return scan(call.name.rsplit("cum", 1)[1], x, dim)


@converts("aten.logcumsumexp")
def logcumsumexp(call: Call, x: ir.Value, dim: int) -> ir.Value:
    return scan("logsumexp", x, dim) if rank(x) else x


@converts("aten.cummax", "aten.cummin")
def running_extremum(call: Call, x: ir.Value, dim: int) -> tuple[Any, Any]:
    """The index is that of the last element equal to (or NaN like) the running value."""
    if rank(x) == 0:
        return x, build.fill([], 0, i64())
    dim %= rank(x)
    fn = call.name.rsplit("cum", 1)[1]
    widened = is_bool(build.element(x))
    source = cast(x, i64()) if widened else x
    values = scan(fn, source, dim)
    indices = None
    if call.used(1):
        hit = pointwise("eq", source, values)
        if is_float(build.element(x)):
            hit = pointwise("or", hit, pointwise("isnan", x))
        at = build.iota(dims(x), dim)
        low = build.number(integer_range(i64())[0], i64())
        indices = scan("max", pointwise("select", hit, at, low), dim)
    return cast(values, build.element(x)), indices


@converts("aten.diff")
def diff(
    call: Call, x: ir.Value, order: int, dim: int, before: ir.Value | None, after: ir.Value | None
) -> ir.Value:
    if order == 0:  # of x itself: torch leaves out what it was given besides
        return cast(x, call.element)
    dim %= rank(x)
    parts = [p for p in (before, x, after) if p is not None]
    x = build.concat([cast(p, call.element) for p in parts], dim)
    for _ in range(order):
        if build.is_zero(dims(x)[dim]):
            break
        less = dims(x)[dim] - 1
        high, low = build.slice_(x, dim, 1, less), build.slice_(x, dim, 0, less)
        x = pointwise("xor" if is_bool(call.element) else "sub", high, low)
    return x


@converts("aten.trace")
def trace(call: Call, x: ir.Value) -> ir.Value:
    size = dims(x)
    diagonal = pointwise("eq", build.iota(size, 0), build.iota(size, 1))
    wide = cast(x, call.element)
    return reduce("sum", pointwise("select", diagonal, wide, build.number(0, call.element)), [0, 1])

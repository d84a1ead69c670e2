"""Normalisation: softmax, layer, root-mean-square, batch, group and instance norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.softmax import softmax as build_softmax
from metadef.symbolic import DimLike, product

from . import build
from .build import along, cast, dims, pointwise, rank, reduce, reshape
from .call import Call
from .dtypes import epsilon, opmath
from .registry import NotModelled, converts


@converts("aten.softmax.int", "aten.log_softmax.int", "aten.special_softmax")
def softmax(call: Call, x: ir.Value, dim: int, dtype: int | None) -> ir.Value:
    return _softmax(cast(x, call.element), dim, "log" in call.name)


@converts("aten.special_log_softmax")
def special_log_softmax(call: Call, x: ir.Value, dim: int, dtype: int | None) -> ir.Value:
    return _softmax(cast(x, call.element), dim, True)


@converts("aten._softmax", "aten._log_softmax")
def softmax_half(call: Call, x: ir.Value, dim: int, half_to_float: bool) -> ir.Value:
    return _softmax(cast(x, call.element), dim, "log" in call.name)


def _softmax(x: ir.Value, dim: int, log: bool) -> ir.Value:
    if rank(x) == 0:
        return reshape(build_softmax(reshape(x, [1]), 0, log), [])
    return build_softmax(x, dim, log)


@converts("aten._safe_softmax")
def safe_softmax(call: Call, x: ir.Value, dim: int, dtype: int | None) -> ir.Value:
    """Softmax, with 0 instead of NaN for a row that is all minus infinity."""
    x = cast(x, call.element)
    if rank(x) == 0:
        raise NotModelled
    lowest = build.number(float("-inf"), call.element)
    masked = reduce("all", pointwise("eq", x, lowest), [dim % rank(x)], keepdim=True)
    soft = build_softmax(x, dim)
    return pointwise("select", masked, build.number(0, call.element), soft)


@converts("aten.layer_norm")
def layer_norm(
    call: Call,
    x: ir.Value,
    shape: Sequence[Any],
    scale: ir.Value | None,
    bias: ir.Value | None,
    eps: float,
    cudnn: bool,
) -> ir.Value:
    return _affine_norm(x, scale, bias, "layer", len(shape), eps)


def _affine_norm(
    x: ir.Value, scale: ir.Value | None, bias: ir.Value | None, kind: str, axes: int, eps: float
) -> ir.Value:
    if scale is None or build.element(scale) != build.element(x):
        result = norm(x, kind=kind, axes=axes, eps=eps)
        return cast(affine(result, scale, bias), build.element(x))
    return norm(x, scale, _as(bias, x), kind=kind, axes=axes, eps=eps)


def _as(bias: ir.Value | None, x: ir.Value) -> ir.Value | None:
    return None if bias is None else cast(bias, build.element(x))


def affine(x: ir.Value, scale: ir.Value | None, bias: ir.Value | None) -> ir.Value:
    """Return x * scale + bias in the wider of the element types."""
    for fn, parameter in (("mul", scale), ("add", bias)):
        if parameter is not None:
            x = pointwise(fn, *build.common(x, parameter))
    return x


@converts("aten.native_layer_norm")
def native_layer_norm(
    call: Call,
    x: ir.Value,
    shape: Sequence[Any],
    scale: ir.Value | None,
    bias: ir.Value | None,
    eps: float,
) -> tuple[Any, ...]:
    """The norm, with mean and 1/sqrt(var + eps) for the backward pass where they are used."""
    result = _affine_norm(x, scale, bias, "layer", len(shape), eps)
    if not call.used(1) and not call.used(2):
        return result, None, None
    axes = list(range(rank(x) - len(shape), rank(x)))
    mean, deviation = _statistics(x, axes, eps)
    return result, result_of(call, 1, mean), result_of(call, 2, deviation)


def result_of(call: Call, index: int, value: ir.Value) -> ir.Value:
    kind = call.results[index]
    assert kind is not None
    return cast(value, kind.element)


def variance(x: ir.Value, axes: list[int]) -> tuple[ir.Value, ir.Value]:
    """Return mean and biased variance in two passes, both with `axes` kept as 1."""
    mean = reduce("mean", x, axes, keepdim=True)
    centred = pointwise("sub", x, mean)
    return mean, reduce("mean", pointwise("mul", centred, centred), axes, keepdim=True)


def _statistics(x: ir.Value, axes: list[int], eps: float) -> tuple[ir.Value, ir.Value]:
    """Return mean and 1/sqrt(var + eps) over `axes`, which are kept as 1."""
    wide = cast(x, opmath(build.element(x)))
    mean, var = variance(wide, axes)
    shifted = pointwise("add", var, build.number(eps, build.element(wide)))
    return mean, pointwise("rsqrt", shifted)


@converts("aten.rms_norm", "aten._fused_rms_norm")
def rms_norm(
    call: Call, x: ir.Value, shape: Sequence[Any], scale: ir.Value | None, eps: float | None
) -> Any:
    if eps is None:
        eps = epsilon(build.element(x))
    result = _affine_norm(x, scale, None, "rms", len(shape), eps)
    if len(call.results) == 1:
        return result
    if not call.used(1):
        return result, None
    axes = list(range(rank(x) - len(shape), rank(x)))
    wide = cast(x, opmath(build.element(x)))
    mean = reduce("mean", pointwise("mul", wide, wide), axes, keepdim=True)
    shifted = pointwise("add", mean, build.number(eps, build.element(wide)))
    return result, result_of(call, 1, pointwise("rsqrt", shifted))


def channels(x: ir.Value | None, of_rank: int, element: ir.Type) -> ir.Value | None:
    """Return a [C] tensor that broadcasts along dim 1, in `element`."""
    return None if x is None else cast(along(x, 1, of_rank), element)


def grouped_norm(
    x: ir.Value, groups: Any, scale: ir.Value | None, bias: ir.Value | None, eps: float
) -> ir.Value:
    """Layer norm over [C/g * positions], then scale and bias by channel."""
    size = dims(x)
    rest = product(size[1:]) // groups
    value = norm(reshape(x, [size[0], groups, rest]), kind="layer", axes=1, eps=eps)
    element = opmath(build.element(x))
    value = affine(
        reshape(value, size) if scale is None else cast(reshape(value, size), element),
        channels(scale, rank(x), element),
        channels(bias, rank(x), element),
    )
    return cast(value, build.element(x))


@converts("aten.group_norm")
def group_norm(
    call: Call, x: ir.Value, groups: int, scale: Any, bias: Any, eps: float, cudnn: bool
) -> ir.Value:
    return grouped_norm(x, groups, scale, bias, eps)


@converts("aten.native_group_norm")
def native_group_norm(
    call: Call,
    x: ir.Value,
    scale: Any,
    bias: Any,
    batch: Any,
    channel_count: Any,
    positions: Any,
    groups: int,
    eps: float,
) -> tuple[Any, ...]:
    result = grouped_norm(x, groups, scale, bias, eps)
    if not call.used(1) and not call.used(2):
        return result, None, None
    size = dims(x)
    grouped = reshape(x, [size[0], groups, product(size[1:]) // groups])
    mean, inverse = _statistics(grouped, [2], eps)
    flat: list[DimLike] = [size[0], groups]
    return (
        result,
        result_of(call, 1, reshape(mean, flat)),
        result_of(call, 2, reshape(inverse, flat)),
    )

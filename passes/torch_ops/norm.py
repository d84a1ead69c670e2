"""Normalisation: softmax, layer, root-mean-square, batch, group and instance norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.ops.softmax import softmax as build_softmax
from metadef.symbolic import Dim, product

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
    return result, _result(call, 1, mean), _result(call, 2, deviation)


def _result(call: Call, index: int, value: ir.Value) -> ir.Value:
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
    return result, _result(call, 1, pointwise("rsqrt", shifted))


def channels(x: ir.Value | None, of_rank: int, element: ir.Type) -> ir.Value | None:
    """Return a [C] tensor that broadcasts along dim 1, in `element`."""
    return None if x is None else cast(along(x, 1, of_rank), element)


def _batch_norm_from(
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value,
    inverse: ir.Value,
) -> ir.Value:
    """Return x * s + t, with s = scale * inverse and t = bias - mean * s, both [C].

    `fold-batch-norm` looks for this form: everything but the last two ops is on weights.
    """
    wide = opmath(build.element(x))
    factor = cast(inverse, wide)
    if scale is not None:
        factor = pointwise("mul", cast(scale, wide), factor)
    shift = pointwise("mul", cast(mean, wide), factor)
    shift = pointwise("neg", shift) if bias is None else pointwise("sub", cast(bias, wide), shift)
    value = pointwise("mul", cast(x, wide), along(factor, 1, rank(x)))
    return cast(pointwise("add", value, along(shift, 1, rank(x))), build.element(x))


def batch_norm_inference(
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value,
    var: ir.Value,
    eps: float,
) -> ir.Value:
    wide = opmath(build.element(var))
    shifted = pointwise("add", cast(var, wide), build.number(eps, wide))
    return _batch_norm_from(x, scale, bias, mean, pointwise("rsqrt", shifted))


def _batch_norm_training(
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    eps: float,
) -> tuple[ir.Value, ir.Value, ir.Value, ir.Value]:
    """Return the norm by the batch's own statistics, then mean, 1/sqrt(var + eps) and var, [C].

    The centred form: x's mean may be large beside its deviation.
    """
    axes = [i for i in range(rank(x)) if i != 1]
    wide = cast(x, opmath(build.element(x)))
    element = build.element(wide)
    mean, var = variance(wide, axes)
    inverse = pointwise("rsqrt", pointwise("add", var, build.number(eps, element)))
    value = pointwise("mul", pointwise("sub", wide, mean), inverse)
    value = affine(value, channels(scale, rank(x), element), channels(bias, rank(x), element))
    flat = [dims(x)[1]]
    statistics = (reshape(t, flat) for t in (mean, inverse, var))
    mean, inverse, var = statistics
    return cast(value, build.element(x)), mean, inverse, var


@converts("aten.batch_norm")
def batch_norm(
    call: Call,
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value | None,
    var: ir.Value | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn: bool,
) -> ir.Value:
    if training:
        return _batch_norm_training(x, scale, bias, eps)[0]
    assert mean is not None and var is not None, "batch norm in eval mode has statistics"
    return batch_norm_inference(x, scale, bias, mean, var, eps)


@converts("aten._native_batch_norm_legit_no_training")
def batch_norm_no_training(
    call: Call, x: ir.Value, scale: Any, bias: Any, mean: Any, var: Any, momentum: float, eps: float
) -> tuple[Any, ...]:
    """The saved statistics are empty tensors in eval mode."""
    return (batch_norm_inference(x, scale, bias, mean, var, eps), *_empty_statistics(call))


def _empty_statistics(call: Call) -> list[Any]:
    saved: list[Any] = []
    for i in (1, 2):
        kind = call.results[i]
        assert kind is not None
        empty = kind.dims == (Dim.of(0),)
        saved.append(build.fill([0], 0, kind.element) if empty else None)
    return saved


@converts("aten.native_batch_norm", "aten._native_batch_norm_legit", "aten.cudnn_batch_norm")
@converts("aten._native_batch_norm_legit_functional", "aten._batch_norm_with_update_functional")
def native_batch_norm(
    call: Call,
    x: ir.Value,
    scale: Any,
    bias: Any,
    mean: Any,
    var: Any,
    *options: Any,
) -> tuple[Any, ...]:
    """Norm, saved mean and inverse deviation; the functional forms add the running statistics."""
    training, momentum, eps = options if len(options) == 3 else (True, *options)
    functional = call.name.endswith("functional")
    with_reserve = "with_update" in call.name
    if not training:
        saved = _empty_statistics(call)
        if with_reserve or any(s is None and call.used(1 + i) for i, s in enumerate(saved)):
            raise NotModelled
        result = batch_norm_inference(x, scale, bias, mean, var, eps)
        return (result, *saved, *((mean, var) if functional else ()))
    result, batch_mean, inverse, batch_var = _batch_norm_training(x, scale, bias, eps)
    saved = [_result(call, 1, batch_mean), _result(call, 2, inverse)]
    if not functional:
        return (result, *saved)
    reserve = []
    if with_reserve:
        kind = call.results[3]
        assert kind is not None
        reserve = [build.fill([0], 0, kind.element)]
    return (
        result,
        *saved,
        *reserve,
        *_running(x, mean, var, batch_mean, batch_var, momentum),
    )


def _running(
    x: ir.Value,
    mean: ir.Value,
    var: ir.Value,
    batch_mean: ir.Value,
    batch_var: ir.Value,
    momentum: float,
) -> list[ir.Value]:
    """Move running statistics towards the batch's; the variance's is the unbiased one."""
    wide = opmath(build.element(mean))
    count = product([d for i, d in enumerate(dims(x)) if i != 1])
    correction = pointwise("div", build.number(count, wide), build.number(count - 1, wide))
    unbiased = pointwise("mul", cast(batch_var, wide), correction)
    updated = []
    for old, new in ((mean, cast(batch_mean, wide)), (var, unbiased)):
        kept = pointwise("mul", cast(old, wide), build.number(1 - momentum, wide))
        moved = pointwise("mul", new, build.number(momentum, wide))
        updated.append(cast(pointwise("add", kept, moved), build.element(old)))
    return updated


@converts("aten._native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    call: Call, x: ir.Value, scale: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple[Any, ...]:
    result, mean, inverse, _ = _batch_norm_training(x, scale, bias, eps)
    return result, _result(call, 1, mean), _result(call, 2, inverse)


@converts("aten.instance_norm")
def instance_norm(
    call: Call,
    x: ir.Value,
    scale: ir.Value | None,
    bias: ir.Value | None,
    mean: ir.Value | None,
    var: ir.Value | None,
    use_input: bool,
    momentum: float,
    eps: float,
    cudnn: bool,
) -> ir.Value:
    """Normalise each channel of each sample over its own positions."""
    if not use_input:
        assert mean is not None and var is not None, "instance norm in eval mode has statistics"
        return batch_norm_inference(x, scale, bias, mean, var, eps)
    return _grouped_norm(x, dims(x)[1], scale, bias, eps)


def _grouped_norm(
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
    return _grouped_norm(x, groups, scale, bias, eps)


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
    result = _grouped_norm(x, groups, scale, bias, eps)
    if not call.used(1) and not call.used(2):
        return result, None, None
    size = dims(x)
    grouped = reshape(x, [size[0], groups, product(size[1:]) // groups])
    mean, inverse = _statistics(grouped, [2], eps)
    flat = [size[0], groups]
    return (
        result,
        _result(call, 1, reshape(mean, flat)),
        _result(call, 2, reshape(inverse, flat)),
    )

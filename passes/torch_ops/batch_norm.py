"""Batch and instance norm: by running statistics in eval mode, by the batch in training."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.symbolic import Dim, product

from . import build
from .build import (
    along,
    cast,
    dims,
    pointwise,
    rank,
    reshape,
)
from .call import Call
from .dtypes import opmath
from .norm import affine, channels, grouped_norm, result_of, variance
from .registry import NotModelled, converts


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
    saved = [result_of(call, 1, batch_mean), result_of(call, 2, inverse)]
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
    return result, result_of(call, 1, mean), result_of(call, 2, inverse)


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
    return grouped_norm(x, dims(x)[1], scale, bias, eps)

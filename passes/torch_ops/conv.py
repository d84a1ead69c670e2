"""Convolution and transposed convolution, over any number of spatial dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose

from . import build
from .build import dims, rank, reshape
from .call import Call
from .dtypes import is_bool
from .registry import NotModelled, converts

Ints = Sequence[int]


def spread(values: Any, count: int) -> list[int]:
    """Return one value for each spatial dim; one value stands for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * count if len(listed) == 1 else listed


def both_ends(padding: Sequence[int]) -> list[int]:
    """Return (low, high) for each dim."""
    return [p for each in padding for p in (each, each)]


def convolve(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    strides: Any,
    padding: Any,
    dilations: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> ir.Value:
    """Build the (transposed) convolution; x without a batch dim gets one for it."""
    spatial = rank(weight) - 2
    if spatial < 1 or is_bool(build.element(x)):
        raise NotModelled
    batched = rank(x) == rank(weight)
    if not batched:
        x = build.unsqueeze(x, 0)
    if transposed:
        result = conv_transpose(
            x,
            weight,
            bias,
            strides=spread(strides, spatial),
            padding=both_ends(spread(padding, spatial)),
            dilations=spread(dilations, spatial),
            groups=groups,
            output_padding=spread(output_padding, spatial),
        )
    else:
        result = conv(
            x,
            weight,
            bias,
            strides=spread(strides, spatial),
            padding=both_ends(spread(padding, spatial)),
            dilations=spread(dilations, spatial),
            groups=groups,
        )
    return result if batched else reshape(result, dims(result)[1:])


@converts("aten.convolution", "aten._convolution", "aten.convolution_overrideable")
def convolution(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    strides: Ints,
    padding: Ints,
    dilations: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    *options: Any,
) -> ir.Value:
    return convolve(
        x, weight, bias, strides, padding, dilations, transposed, output_padding, groups
    )


@converts("aten.conv1d", "aten.conv2d", "aten.conv3d")
def conv_nd(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    strides: Ints,
    padding: Ints,
    dilations: Ints,
    groups: int,
) -> ir.Value:
    return convolve(x, weight, bias, strides, padding, dilations, False, 0, groups)


@converts("aten.conv1d.padding", "aten.conv2d.padding", "aten.conv3d.padding")
def conv_named_padding(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    strides: Ints,
    padding: str,
    dilations: Ints,
    groups: int,
) -> ir.Value:
    """`same` pads dilation * (kernel - 1), the odd element at the high end; `valid` nothing."""
    spatial = rank(weight) - 2
    kernel = dims(weight)[2:]
    if padding == "valid":
        return convolve(x, weight, bias, strides, 0, dilations, False, 0, groups)
    if not all(k.is_static for k in kernel):
        raise NotModelled
    batched = rank(x) == rank(weight)
    x = x if batched else build.unsqueeze(x, 0)
    totals = [d * (k.value - 1) for d, k in zip(spread(dilations, spatial), kernel, strict=True)]
    result = conv(
        x,
        weight,
        bias,
        strides=spread(strides, spatial),
        padding=[p for total in totals for p in (total // 2, total - total // 2)],
        dilations=spread(dilations, spatial),
        groups=groups,
    )
    return result if batched else reshape(result, dims(result)[1:])


@converts("aten.conv_transpose1d", "aten.conv_transpose2d.input", "aten.conv_transpose3d.input")
def conv_transpose_nd(
    call: Call,
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    strides: Ints,
    padding: Ints,
    output_padding: Ints,
    groups: int,
    dilations: Ints,
) -> ir.Value:
    return convolve(x, weight, bias, strides, padding, dilations, True, output_padding, groups)

"""Convolution and transposed convolution, over any number of spatial dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose

from . import build
from ._windows import both_ends, spread, with_batch, without_batch
from .build import dims, rank
from .call import Call
from .dtypes import is_bool
from .registry import NotModelled, converts

Ints = Sequence[int]


def convolve(
    x: ir.Value,
    weight: ir.Value,
    bias: ir.Value | None,
    strides: Any,
    ends: Ints,
    dilations: Any,
    groups: int,
    output_padding: Any = None,
) -> ir.Value:
    """Build a convolution, transposed if it has `output_padding`; x may lack a batch dim.

    `ends` are (low, high) padding for each spatial dim.
    """
    spatial = _spatial(weight)
    if spatial < 1 or is_bool(build.element(x)):
        raise NotModelled
    x, had = with_batch(x, spatial)
    sizes: dict[str, Any] = {
        "strides": spread(strides, spatial),
        "padding": ends,
        "dilations": spread(dilations, spatial),
        "groups": groups,
    }
    if output_padding is None:
        return without_batch(conv(x, weight, bias, **sizes), had)
    extra = spread(output_padding, spatial)
    return without_batch(conv_transpose(x, weight, bias, output_padding=extra, **sizes), had)


def _spatial(weight: ir.Value) -> int:
    return rank(weight) - 2


def _ends(padding: Any, weight: ir.Value) -> list[int]:
    return both_ends(spread(padding, _spatial(weight)))


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
    extra = output_padding if transposed else None
    return convolve(x, weight, bias, strides, _ends(padding, weight), dilations, groups, extra)


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
    return convolve(x, weight, bias, strides, _ends(padding, weight), dilations, groups)


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
    kernel = dims(weight)[2:]
    if padding == "valid":
        return convolve(x, weight, bias, strides, _ends(0, weight), dilations, groups)
    if not all(k.is_static for k in kernel):
        raise NotModelled
    spaces = spread(dilations, len(kernel))
    totals = [d * (k.value - 1) for d, k in zip(spaces, kernel, strict=True)]
    ends = [p for total in totals for p in (total // 2, total - total // 2)]
    return convolve(x, weight, bias, strides, ends, dilations, groups)


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
    ends = _ends(padding, weight)
    return convolve(x, weight, bias, strides, ends, dilations, groups, output_padding)

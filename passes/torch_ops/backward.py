"""Gradients that aot_autograd leaves whole: convolution, pooling, resampling, attention."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.scatter import scatter
from metadef.symbolic import Dim, DimLike, product

from . import build
from ._windows import both_ends, spread
from .build import cast, contraction, dims, pointwise, rank, reduce, reshape, slice_, transpose
from .call import Call
from .dtypes import i64, is_bool, opmath
from .registry import NotModelled, converts

Ints = Sequence[int]


@converts("aten.convolution_backward")
def convolution_backward(
    call: Call,
    gradient: ir.Value,
    x: ir.Value,
    weight: ir.Value,
    bias_sizes: Any,
    strides: Ints,
    padding: Ints,
    dilations: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: int,
    mask: Sequence[bool],
) -> tuple[Any, ...]:
    """Gradients by input, weight and bias: convolutions of the output's gradient."""
    spatial = rank(weight) - 2
    if rank(x) != rank(weight):
        raise NotModelled
    steps, spaces = spread(strides, spatial), spread(dilations, spatial)
    ends = both_ends(spread(padding, spatial))
    by_input = by_weight = by_bias = None
    if mask[0] and transposed:
        by_input = conv(
            gradient, weight, strides=steps, padding=ends, dilations=spaces, groups=groups
        )
    elif mask[0]:
        by_input = _input_gradient(gradient, x, weight, steps, ends, spaces, groups)
    if mask[1]:
        source, output = (gradient, x) if transposed else (x, gradient)
        by_weight = _weight_gradient(source, output, dims(weight), steps, ends, spaces, groups)
    if mask[2]:
        by_bias = reduce("sum", gradient, [i for i in range(rank(gradient)) if i != 1])
    return by_input, by_weight, by_bias


def _input_gradient(
    gradient: ir.Value,
    x: ir.Value,
    weight: ir.Value,
    strides: list[int],
    padding: list[int],
    dilations: list[int],
    groups: int,
) -> ir.Value:
    """A transposed convolution, with the rows that the stride left over as output padding."""
    extra = []
    for i, (s, d) in enumerate(zip(strides, dilations, strict=True)):
        covered = (dims(gradient)[2 + i] - 1) * s + (dims(weight)[2 + i] - 1) * d + 1
        left = dims(x)[2 + i] - covered + (padding[2 * i] + padding[2 * i + 1])
        if not left.is_static:
            raise NotModelled
        extra.append(left.value)
    return conv_transpose(
        gradient,
        weight,
        strides=strides,
        padding=padding,
        dilations=dilations,
        groups=groups,
        output_padding=extra,
    )


def _weight_gradient(
    x: ir.Value,
    gradient: ir.Value,
    weight_dims: tuple[Dim, ...],
    strides: list[int],
    padding: list[int],
    dilations: list[int],
    groups: int,
) -> ir.Value:
    """Convolve x by the gradient over the batch: channels and batch change places.

    x [N, g I, ..] becomes [I, g N, ..], the gradient [N, O, ..] becomes [O, N, ..]; the result
    [I, O, kernel..] may have more positions than the kernel, which are cut off.
    """
    batch, channels, *positions = dims(x)
    each = channels // groups
    order = list(range(3, rank(x) + 1))
    apart = transpose(reshape(x, [batch, groups, each, *positions]), [2, 1, 0, *order])
    result = conv(
        reshape(apart, [each, batch * groups, *positions]),
        transpose(gradient, [1, 0, *range(2, rank(x))]),
        strides=dilations,
        padding=padding,
        dilations=strides,
        groups=groups,
    )
    for i, size in enumerate(weight_dims[2:]):
        result = slice_(result, 2 + i, 0, size)
    return transpose(result, [1, 0, *range(2, rank(x))])


@converts("aten.max_pool2d_with_indices_backward", "aten.max_pool3d_with_indices_backward")
def max_pool_backward(
    call: Call,
    gradient: ir.Value,
    x: ir.Value,
    kernel: Ints,
    strides: Ints,
    padding: Ints,
    dilations: Ints,
    ceil_mode: bool,
    indices: ir.Value,
) -> ir.Value:
    """Add each gradient at the flat position its maximum was at."""
    spatial = int(call.name.split("pool")[1][0])
    first = rank(x) - spatial
    batch, positions = dims(x)[:first], product(dims(x)[first:])
    windows = [*batch, product(dims(gradient)[first:])]
    zeros = build.fill([*batch, positions], 0, call.element)
    flat = scatter(zeros, reshape(indices, windows), reshape(gradient, windows), first, "add")
    return reshape(flat, dims(x))


@converts("aten.avg_pool2d_backward", "aten.avg_pool3d_backward")
def avg_pool_backward(
    call: Call,
    gradient: ir.Value,
    x: ir.Value,
    kernel: Ints,
    strides: Ints,
    padding: Ints,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor: int | None,
) -> ir.Value:
    """Spread the divided gradient over each window: a transposed convolution with ones."""
    spatial = int(call.name.split("pool")[1][0])
    extents, pads = spread(kernel, spatial), spread(padding, spatial)
    steps = spread(strides, spatial) if strides else extents
    if ceil_mode or (divisor is None and not count_include_pad and any(pads)):
        raise NotModelled
    first = rank(x) - spatial
    planes: list[DimLike] = [product(dims(x)[:first]), 1]
    area = divisor if divisor is not None else math.prod(extents)
    scaled = pointwise("div", gradient, build.number(area, call.element))
    ones = build.fill([1, 1, *extents], 1, call.element)
    result = _input_gradient(
        reshape(scaled, [*planes, *dims(gradient)[first:]]),
        reshape(x, [*planes, *dims(x)[first:]]),
        ones,
        steps,
        both_ends(pads),
        [1] * spatial,
        1,
    )
    return reshape(result, dims(x))


@converts("aten._adaptive_avg_pool2d_backward", "aten._adaptive_avg_pool3d_backward")
def adaptive_avg_pool_backward(call: Call, gradient: ir.Value, x: ir.Value) -> ir.Value:
    """Repeat the divided gradient where the windows do not overlap."""
    spatial = int(call.name.split("pool")[1][0])
    first = rank(x) - spatial
    sizes, counts = dims(x)[first:], dims(gradient)[first:]
    repeats: list[DimLike] = [n // m for n, m in zip(sizes, counts, strict=True)]
    if any(r * m != n for r, m, n in zip(repeats, counts, sizes, strict=True)):
        raise NotModelled
    area = build.number(product(repeats), call.element)
    scaled = pointwise("div", gradient, area)
    return _repeated(scaled, first, repeats)


def _repeated(x: ir.Value, first: int, repeats: Sequence[DimLike]) -> ir.Value:
    """Return x with each element of the dims from `first` on repeated."""
    size = dims(x)
    apart: list[DimLike] = [part for d in size[first:] for part in (d, 1)]
    wide = [part for d, r in zip(size[first:], repeats, strict=True) for part in (d, r)]
    merged = [d * r for d, r in zip(size[first:], repeats, strict=True)]
    stretched = build.broadcast(reshape(x, [*size[:first], *apart]), [*size[:first], *wide])
    return reshape(stretched, [*size[:first], *merged])


@converts("aten.upsample_nearest2d_backward", "aten.upsample_nearest1d_backward")
def nearest_backward(
    call: Call, gradient: ir.Value, sizes: Any, input_sizes: Any, *factors: float | None
) -> ir.Value:
    """Sum the windows that each element was copied to, for whole factors."""
    spatial = dims(gradient)[2:]
    kernel = []
    for d, source, factor in zip(spatial, input_sizes[2:], factors, strict=True):
        times = d // source
        if not times.is_static or times * source != d or factor not in (None, times.value):
            raise NotModelled
        kernel.append(times.value)
    mean = pool("avg", gradient, kernel)
    return pointwise("mul", mean, build.number(math.prod(kernel), call.element))


@converts("aten._scaled_dot_product_flash_attention_for_cpu_backward")
def flash_attention_for_cpu_backward(
    call: Call,
    gradient: ir.Value,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    output: ir.Value,
    log_sums: ir.Value,
    dropout: float,
    causal: bool,
    mask: ir.Value | None,
    scale: float | None,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """P = exp(scores - log_sums); dS = P (dO v^T - sum(dO O)) scale (Dao et al. 2022, 3.1)."""
    if dropout != 0 or dims(q)[1] != dims(k)[1]:
        raise NotModelled
    wide = opmath(build.element(q))
    scores, factor = attention_scores(q, k, mask, causal, scale)
    p = pointwise("exp", pointwise("sub", scores, build.unsqueeze(log_sums, rank(log_sums))))
    gradient, output = cast(gradient, wide), cast(output, wide)
    q, k, v = (cast(t, wide) for t in (q, k, v))
    by_v = contraction(p, gradient, transpose_lhs=True)
    by_p = contraction(gradient, v, transpose_rhs=True)
    row = reduce("sum", pointwise("mul", gradient, output), [rank(q) - 1], keepdim=True)
    by_scores = pointwise("mul", pointwise("mul", p, pointwise("sub", by_p, row)), factor)
    by_q = contraction(by_scores, k)
    by_k = contraction(by_scores, q, transpose_lhs=True)
    kinds = call.results
    results = []
    for value, kind in zip((by_q, by_k, by_v), kinds, strict=True):
        assert kind is not None
        results.append(cast(value, kind.element))
    return results[0], results[1], results[2]


def attention_scores(
    q: ir.Value, k: ir.Value, mask: ir.Value | None, causal: bool, scale: float | None
) -> tuple[ir.Value, ir.Value]:
    """Return the masked scores [B, H, L, S] in f32 or wider, and the scale as a tensor."""
    wide = opmath(build.element(q))
    head = dims(q)[-1]
    if scale is None and not head.is_static:
        raise NotModelled
    factor = build.number(scale if scale is not None else head.value**-0.5, wide)
    scores = contraction(cast(q, wide), cast(k, wide), transpose_rhs=True)
    scores = pointwise("mul", scores, factor)
    lowest = build.number(float("-inf"), wide)
    if mask is not None and is_bool(build.element(mask)):
        scores = pointwise("select", mask, scores, lowest)
    elif mask is not None:
        scores = pointwise("add", scores, cast(mask, wide))
    if causal:
        size = dims(scores)[-2:]
        distance = pointwise("sub", build.iota(size, 1), build.iota(size, 0))
        kept = pointwise("le", distance, build.number(0, i64()))
        scores = pointwise("select", kept, scores, lowest)
    return scores, factor

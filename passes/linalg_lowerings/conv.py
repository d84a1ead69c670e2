"""Convolutions: a padded input, a fill and one generic of multiply and add over the windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.diagnostics import UnsupportedOpError
from metadef.dialects.metadef.attributes import integer, integers, text
from metadef.symbolic import Dim, same

from . import views
from .assemble import pad_constant
from .contraction import multiply_add
from .expression import Load, Value, apply, constant_expr, substitute
from .kernel import Kernel, result_type


@dataclass(frozen=True)
class Window:
    """How a loop over outputs and one over kernel taps address an input dim."""

    stride: int
    dilation: int

    def position(self, output: ir.AffineExpr, tap: ir.AffineExpr) -> ir.AffineExpr:
        return output * self.stride + tap * self.dilation


def lower_conv(kernel: Kernel, op: Any) -> list[Value]:
    """x is padded with zeros first if need be; bias joins the consumers."""
    operands = list(op.operation.operands)
    layout, groups = text(op, "layout"), integer(op, "groups")
    strides, dilations = integers(op, "strides"), integers(op, "dilations")
    padding = integers(op, "padding")
    x = kernel.value(operands[0])
    if any(padding):
        low, high = _around_channels(layout, padding[::2]), _around_channels(layout, padding[1::2])
        x = pad_constant(kernel, x, low, high, 0)
    if not isinstance(x.expr, Load):
        x = kernel.loaded(operands[0]) if not any(padding) else kernel.store(x)
    w = kernel.loaded(operands[1])
    windows = [Window(s, d) for s, d in zip(strides, dilations, strict=True)]
    result = op.operation.results[0] if len(operands) == 2 else None
    weights = _weights_nchw(kernel, w, groups) if layout == "nchw" else _weights_nhwc(w)
    value = convolve(kernel, x, weights, windows, groups, layout, result_type(op), result)
    return [_with_bias(kernel, value, operands, layout)]


def _around_channels(layout: str, spatial: Sequence[int]) -> list[int]:
    return [0, 0, *spatial] if layout == "nchw" else [0, *spatial, 0]


def _with_bias(kernel: Kernel, value: Value, operands: list[ir.Value], layout: str) -> Value:
    if len(operands) == 2:
        return value
    rank = len(value.dims)
    channel = ir.AffineExpr.get_dim(1 if layout == "nchw" else rank - 1)
    bias = substitute(kernel.value(operands[2]).expr, [channel], rank)
    return Value(value.dims, apply("add", value.expr, bias))


@dataclass(frozen=True)
class Weights:
    """A weight value and where its group, output, input and tap dims are (None: there is none)."""

    value: Value
    group: int | None
    output: int
    input: int
    taps: tuple[int, ...]
    #: taps are read from the last to the first
    flipped: bool = False


def _weights_nchw(kernel: Kernel, w: Value, groups: int) -> Weights:
    """[O, I, taps..] as [G, O/G, I, taps..] when there are groups."""
    taps = len(w.dims) - 2
    if groups == 1:
        return Weights(w, None, 0, 1, tuple(range(2, 2 + taps)))
    split = [Dim.of(groups), w.dims[0] // groups, *w.dims[1:]]
    return Weights(as_dims(kernel, w, split), 0, 1, 2, tuple(range(3, 3 + taps)))


def _weights_nhwc(w: Value) -> Weights:
    """[G, taps.., I, O]."""
    rank = len(w.dims)
    return Weights(w, 0, rank - 1, rank - 2, tuple(range(1, rank - 2)))


def as_dims(kernel: Kernel, value: Value, dims: Sequence[Dim]) -> Value:
    """Return a loaded value under other dims, storing it if no view does."""
    try:
        return views.reshape(kernel, value, dims)
    except views.NotAView:
        return views.reshape(kernel, kernel.store(value), dims)


def convolve(
    kernel: Kernel,
    x: Value,
    weights: Weights,
    windows: Sequence[Window],
    groups: int,
    layout: str,
    result: tuple[tuple[Dim, ...], ir.Type],
    old: ir.Value | None,
) -> Value:
    """Emit fill and generic over [n, g, o, out.., c, taps..] or [n, out.., g, o, taps.., c]."""
    dims, element = result
    w = weights.value
    channels_last = layout == "nhwc"
    spatial = list(dims[1:-1] if channels_last else dims[2:])
    outputs, inputs = w.dims[weights.output], w.dims[weights.input]
    # Depthwise: a group with one channel in or out has no loop for it.
    has_output = groups == 1 or not same(outputs, 1)
    has_input = not same(inputs, 1)
    channel = ([Dim.of(groups)] if groups > 1 else []) + ([outputs] if has_output else [])
    taps = [w.dims[t] for t in weights.taps]
    depth = [inputs] if has_input else []
    if channels_last:
        parallel, reduced = [dims[0], *spatial, *channel], [*taps, *depth]
    else:
        parallel, reduced = [dims[0], *channel, *spatial], [*depth, *taps]
    loops = [ir.AffineExpr.get_dim(i) for i in range(len(parallel) + len(reduced))]
    first_space = 1 if channels_last else 1 + len(channel)
    first_channel = 1 + len(spatial) if channels_last else 1
    first_tap = len(parallel) + (0 if channels_last else len(depth))
    space, tap = loops[first_space:][: len(spatial)], loops[first_tap:][: len(taps)]
    zero = constant_expr(0)
    group = loops[first_channel] if groups > 1 else zero
    output = loops[first_channel + (groups > 1)] if has_output else zero
    depth_loop = loops[len(parallel) + (len(taps) if channels_last else 0)] if has_input else zero

    if groups > 1:
        at = len(x.dims) - 1 if channels_last else 1
        x = as_dims(kernel, x, [*x.dims[:at], Dim.of(groups), inputs, *x.dims[at + 1 :]])
    where = [s.position(o, t) for s, o, t in zip(windows, space, tap, strict=True)]
    x_channel = ([group] if groups > 1 else []) + [depth_loop]
    x_at = [loops[0], *where, *x_channel] if channels_last else [loops[0], *x_channel, *where]
    w_at: list[ir.AffineExpr] = [zero] * len(w.dims)
    if weights.group is not None:
        w_at[weights.group] = group
    w_at[weights.output], w_at[weights.input] = output, depth_loop
    for t, loop in zip(weights.taps, tap, strict=True):
        w_at[t] = w.dims[t].value - 1 - loop if weights.flipped else loop
    iterators = ["parallel"] * len(parallel) + ["reduction"] * len(reduced)
    value = multiply_add(
        kernel, [*parallel, *reduced], iterators, (x, x_at), (w, w_at), parallel, element, old
    )
    return views.reshape(kernel, value, dims)


def lower_conv_transpose(kernel: Kernel, op: Any) -> list[Value]:
    """As a convolution of the input, its elements `strides` apart among zeros, by flipped taps.

    Where each input element has a patch of the result to itself, as a matrix product.
    """
    operands = list(op.operation.operands)
    groups = integer(op, "groups")
    strides, dilations = integers(op, "strides"), integers(op, "dilations")
    padding, extra = integers(op, "padding"), integers(op, "output_padding")
    w = kernel.loaded(operands[1])
    taps = w.dims[2:]
    if not all(t.is_static for t in taps):
        raise UnsupportedOpError(
            f"'metadef.conv_transpose' op: the kernel's size must be known, got {list(taps)};"
            f" from {op.location}"
        )
    result = op.operation.results[0] if len(operands) == 2 else None
    if (
        groups == 1
        and [t.value for t in taps] == strides
        and max(*dilations, 1) == 1
        and not any([*padding, *extra])
    ):
        x = kernel.loaded(operands[0])
        value = _spread_patches(kernel, x, w, result_type(op), result)
        return [_with_bias(kernel, value, operands, "nchw")]
    reach = [d * (t.value - 1) for d, t in zip(dilations, taps, strict=True)]
    low = [0, 0, *(r - p for r, p in zip(reach, padding[::2], strict=True))]
    high = [0, 0, *(r - p + e for r, p, e in zip(reach, padding[1::2], extra, strict=True))]
    x = kernel.value(operands[0])
    steps = [1, 1, *strides]
    if min(*low, *high) < 0 and max(steps) > 1:
        zeros = [0] * len(steps)
        x = pad_constant(kernel, x, zeros, zeros, 0, steps=steps)
        steps = [1] * len(steps)
    x = pad_constant(kernel, x, low, high, 0, steps=steps)
    if not isinstance(x.expr, Load):
        x = kernel.store(x)
    if groups > 1:
        w = as_dims(kernel, w, [Dim.of(groups), w.dims[0] // groups, *w.dims[1:]])
        weights = Weights(w, 0, 2, 1, tuple(range(3, len(w.dims))), flipped=True)
    else:
        weights = Weights(w, None, 1, 0, tuple(range(2, len(w.dims))), flipped=True)
    windows = [Window(1, d) for d in dilations]
    value = convolve(kernel, x, weights, windows, groups, "nchw", result_type(op), result)
    return [_with_bias(kernel, value, operands, "nchw")]


def _spread_patches(
    kernel: Kernel,
    x: Value,
    w: Value,
    result: tuple[tuple[Dim, ...], ir.Type],
    old: ir.Value | None,
) -> Value:
    """Emit `out[n, o, (i, t)..] += x[n, c, i..] * w[c, o, t..]`: patches lie side by side."""
    dims, element = result
    pairs = list(zip(x.dims[2:], w.dims[2:], strict=True))
    parallel = [dims[0], dims[1], *(d for pair in pairs for d in pair)]
    loops = [ir.AffineExpr.get_dim(i) for i in range(len(parallel) + 1)]
    channel = loops[-1]
    value = multiply_add(
        kernel,
        [*parallel, x.dims[1]],
        ["parallel"] * len(parallel) + ["reduction"],
        (x, [loops[0], channel, *loops[2:-1:2]]),
        (w, [channel, loops[1], *loops[3:-1:2]]),
        parallel,
        element,
        old,
    )
    return views.reshape(kernel, value, dims)

"""How each op takes a transposed operand: the rules of `propagate-layout`, one function an op.

A rule builds the op on the source of a transpose and returns the result, transposed, or None to
leave the op as it is. With `v = transpose(x, perm)`, dim i of v is dim `perm[i]` of x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metadef import ir
from metadef.cost.layout import NCHW
from metadef.dialects.metadef.attributes import (
    boolean,
    choice,
    integer,
    integers,
    real,
    scalar,
    text,
)
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.concat import concat
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.norm import KINDS, norm
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.pool import pool
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.ops.slice import slice as slice_dim
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.symbolic import Dim, product

from ._layout import Sweep
from ._layout_choice import is_pointwise
from ._permutations import compose, inverse, to_channels_first
from ._reshapes import push_through, reshaped

Rule = Callable[[Sweep, Any], "ir.Value | None"]


def sink_below_conv(sweep: Sweep, op: Any) -> ir.Value | None:
    """conv nchw -> transpose(conv nhwc), its weight [O, I/g, k..] as [g, k.., I/g, O/g].

    Where nchw is chosen, one by a kernel of one element is a product of the weight by all pixels.
    """
    if text(op, "layout") != "nchw":
        return None
    x, w, *bias = op.operands
    perm = to_channels_first(shape_of(x).rank)
    groups = integer(op, "groups")
    if sweep.layout_of(op) == NCHW:
        return _product_by_pixels(op, groups) if is_pointwise(op) else None
    out, per_group, *kernel = shape_of(w).dims
    split = reshaped(w, [groups, out // groups, per_group, *kernel])
    order = (0, *range(3, 3 + len(kernel)), 2, 1)
    y = conv(
        sweep.source_of(x, perm),
        sweep.reorder(split, order),
        *bias,
        strides=integers(op, "strides"),
        padding=integers(op, "padding"),
        dilations=integers(op, "dilations"),
        groups=groups,
        layout="nhwc",
    )
    return sweep.view(y, perm)


def _product_by_pixels(op: Any, groups: int) -> ir.Value:
    """Build [g, O/g, I/g] x [n, g, I/g, pixels], plus the bias, as [n, O, spatial..]."""
    x, w, *bias = op.operands
    batch, channels, *spatial = shape_of(x).dims
    out, per_group, *_ = shape_of(w).dims
    split = [Dim.of(groups)] if groups > 1 else []
    matrix = reshaped(w, [*split, out // groups, per_group])
    pixels = reshaped(x, [batch, *split, channels // groups, product([*spatial])])
    dims = shape_of(op.results[0]).dims
    y = reshaped(contraction(matrix, pixels), dims)
    if not bias:
        return y
    return pointwise("add", y, reshaped(bias[0], [out, *[ONE] * len(spatial)]))


def sink_below_pool(sweep: Sweep, op: Any) -> ir.Value | None:
    """pool nchw -> transpose(pool nhwc), unless nchw is chosen."""
    if text(op, "layout") != "nchw" or sweep.layout_of(op) == NCHW:
        return None
    x = op.operands[0]
    perm = to_channels_first(shape_of(x).rank)
    y = pool(
        text(op, "fn"),
        sweep.source_of(x, perm),
        integers(op, "kernel"),
        strides=integers(op, "strides"),
        padding=integers(op, "padding"),
        dilations=integers(op, "dilations"),
        count_include_pad=boolean(op, "count_include_pad"),
        layout="nhwc",
    )
    return sweep.view(y, perm)


def turn_conv_transpose_into_contraction(sweep: Sweep, op: Any) -> ir.Value | None:
    """conv_transpose by disjoint windows -> every pixel times [I, k..*O], then interleave."""
    x, w, *bias = op.operands
    inputs, out, *kernel = shape_of(w).dims
    if (
        [Dim.of(s) for s in integers(op, "strides")] != kernel
        or any(integers(op, "padding"))
        or any(integers(op, "output_padding"))
        or any(d != 1 for d in integers(op, "dilations"))
        or integer(op, "groups") != 1
    ):
        return None
    perm = to_channels_first(shape_of(x).rank)
    source = sweep.source_of(x, perm)
    batch, *spatial, _ = shape_of(source).dims
    n = len(spatial)
    columns = product([*kernel, out])
    matrix = reshaped(sweep.reorder(w, (0, *range(2, 2 + n), 1)), [inputs, columns])
    y = contraction(reshaped(source, [product([batch, *spatial]), inputs]), matrix)
    if bias:
        tiled = broadcast(bias[0], [*kernel, out])
        y = pointwise("add", y, reshaped(tiled, [columns]))
    y = reshaped(y, [batch, *spatial, *kernel, out])
    interleave = [a for i in range(n) for a in (1 + i, 1 + n + i)]
    y = transpose(y, [0, *interleave, 1 + 2 * n])
    sizes = [s * k for s, k in zip(spatial, kernel, strict=True)]
    return sweep.view(reshaped(y, [batch, *sizes, out]), perm)


def merge_transposes(sweep: Sweep, op: Any) -> ir.Value | None:
    """transpose(transpose(x)) -> transpose(x), and nothing where they cancel."""
    x, perm = op.operands[0], tuple(integers(op, "perm"))
    if x in sweep.views:
        source, inner = sweep.views[x]
        return sweep.view(source, compose(inner, perm))
    if len(perm) >= 4 and perm == to_channels_first(len(perm)):
        sweep.views[op.results[0]] = (x, perm)
    return None


def sink_below_pointwise(sweep: Sweep, op: Any) -> ir.Value | None:
    """f(transpose(x), y) -> transpose(f(x, y')), y' being y in x's order."""
    result = shape_of(op.results[0])
    perm = sweep.view_of_operands(op.operands, result.rank)
    if perm is None:
        return None
    operands = []
    for value in op.operands:
        dims = shape_of(value).dims
        if not all(d == ONE for d in dims):
            if len(dims) < result.rank:
                value = reshaped(value, [ONE] * (result.rank - len(dims)) + list(dims))
            value = sweep.source_of(value, perm)
        operands.append(value)
    y = pointwise(text(op, "fn"), *operands, element=result.element)
    return sweep.view(y, perm)


def sink_below_reduce(sweep: Sweep, op: Any) -> ir.Value | None:
    """reduce(transpose(x), dims) -> transpose(reduce(x, dims of x))."""
    x = op.operands[0]
    if x not in sweep.views:
        return None
    source, perm = sweep.views[x]
    dims, keepdim = integers(op, "dims"), boolean(op, "keepdim")
    y = reduce(text(op, "fn"), source, [perm[d] for d in dims], keepdim)
    if keepdim:
        return sweep.view(y, perm)
    kept = [p for i, p in enumerate(perm) if i not in dims]
    return sweep.view(y, tuple(sorted(kept).index(p) for p in kept))


def sink_below_softmax(sweep: Sweep, op: Any) -> ir.Value | None:
    """softmax(transpose(x), dim) -> transpose(softmax(x, dim of x))."""
    x = op.operands[0]
    if x not in sweep.views:
        return None
    source, perm = sweep.views[x]
    return sweep.view(softmax(source, perm[integer(op, "dim")], boolean(op, "log")), perm)


def sink_below_norm(sweep: Sweep, op: Any) -> ir.Value | None:
    """norm(transpose(x)) -> transpose(norm(x)) when the normalised axes are the last of x too."""
    x, *affine = op.operands
    axes = integer(op, "axes")
    if x not in sweep.views:
        return None
    source, perm = sweep.views[x]
    if perm[-axes:] != tuple(range(len(perm) - axes, len(perm))):
        return None
    kind, eps = choice(op, "kind", KINDS), real(op, "eps")
    return sweep.view(norm(source, *affine, kind=kind, axes=axes, eps=eps), perm)


def sink_below_pad(sweep: Sweep, op: Any) -> ir.Value | None:
    """pad(transpose(x)) -> transpose(pad(x))."""
    x = op.operands[0]
    if x not in sweep.views:
        return None
    source, perm = sweep.views[x]
    back = inverse(perm)
    low, high = integers(op, "low"), integers(op, "high")
    y = pad(
        source,
        [low[i] for i in back],
        [high[i] for i in back],
        text(op, "mode"),
        scalar(op, "value"),
    )
    return sweep.view(y, perm)


def sink_below_slice(sweep: Sweep, op: Any) -> ir.Value | None:
    """slice(transpose(x), dim) -> transpose(slice(x, dim of x))."""
    x, dim = op.operands[0], integer(op, "dim")
    if x not in sweep.views:
        return None
    source, perm = sweep.views[x]
    size = shape_of(op.results[0]).dims[dim]
    return sweep.view(
        slice_dim(source, perm[dim], text(op, "start"), size, integer(op, "step")), perm
    )


def sink_below_concat(sweep: Sweep, op: Any) -> ir.Value | None:
    """concat(transpose(x), y) -> transpose(concat(x, y'))."""
    perm = sweep.view_of_operands(op.operands, shape_of(op.results[0]).rank)
    if perm is None:
        return None
    parts = [sweep.source_of(v, perm) for v in op.operands]
    return sweep.view(concat(parts, perm[integer(op, "dim")]), perm)


def sink_below_reshape(sweep: Sweep, op: Any) -> ir.Value | None:
    """reshape(transpose(x)) -> transpose(reshape(x)) when merged dims are neighbours in x."""
    x = op.operands[0]
    if x not in sweep.views:
        return None
    source, perm = sweep.views[x]
    pushed = push_through(perm, shape_of(x).dims, shape_of(op.results[0]).dims)
    if pushed is None:
        return None
    dims, outer = pushed
    return sweep.view(reshaped(source, dims), outer)


RULES: dict[str, Rule] = {
    "metadef.conv": sink_below_conv,
    "metadef.pool": sink_below_pool,
    "metadef.conv_transpose": turn_conv_transpose_into_contraction,
    "metadef.transpose": merge_transposes,
    "metadef.pointwise": sink_below_pointwise,
    "metadef.reduce": sink_below_reduce,
    "metadef.softmax": sink_below_softmax,
    "metadef.norm": sink_below_norm,
    "metadef.pad": sink_below_pad,
    "metadef.slice": sink_below_slice,
    "metadef.concat": sink_below_concat,
    "metadef.reshape": sink_below_reshape,
}

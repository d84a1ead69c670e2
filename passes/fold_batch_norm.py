"""Fold scales and shifts of channels into the weights of the convolution or product before them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, integers, text
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.conv_transpose import conv_transpose
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass

from ._buffers import values_known_once
from ._locations import fuse_locations

_ANCHORS = ("metadef.contraction", "metadef.conv", "metadef.conv_transpose")
_SCALES = ("mul", "div")
_AFFINE = ("add", "sub", *_SCALES)


@dataclass(frozen=True)
class FoldBatchNorm(Pass):
    """Fold `conv(x, w) * s + t`, s and t known per channel, into `conv(x, w * s, t)`.

    Before:
        %0 = "metadef.conv"(%x, %w, %b)
        %1 = "metadef.pointwise"(%0, %s) <{fn = "mul"}> : [N, C, H, W], [C, 1, 1]
        %2 = "metadef.pointwise"(%1, %t) <{fn = "add"}> : [N, C, H, W], [C, 1, 1]
    After:
        %0 = "metadef.pointwise"(%w, %s') <{fn = "mul"}> : [C, I, KH, KW], [C, 1, 1, 1]
        %1 = "metadef.pointwise"(%b, %s'') <{fn = "mul"}> : [C], [C]
        %2 = "metadef.pointwise"(%1, %t') <{fn = "add"}> : [C], [C]
        %3 = "metadef.conv"(%x, %0, %2)

    The ops on weights are outlined into @init and run once. A chain of add, sub, mul and div whose
    values have no other use is followed as far as its other operands depend on weights alone and
    vary along the channels only. A contraction, which has no bias, keeps one add.
    Batch norm in eval mode is such a chain; so are layer scale and a scaled head.
    """

    accepts = FRONT
    requires = "metadef ops on tensors"
    leaves = "convolutions without a per-channel chain of known scales and shifts after them"

    def run(self, module: ir.Operation) -> None:
        for function in ir.entry_block(module):
            if function.operation.name != "func.func" or function.is_external:
                continue
            block = ir.entry_block(function)
            known = values_known_once(block)
            for op in list(block.operations):
                if op.operation.name in _ANCHORS and op.operation.operands[1] in known:
                    _fold(op.operation, known)


@dataclass(frozen=True)
class Step:
    """One op of the chain: `fn(y, other)`, or `fn(other, y)` when `reversed`."""

    op: ir.Operation
    fn: str
    other: ir.Value
    reversed: bool


def _fold(anchor: ir.Operation, known: Collection[ir.Value]) -> None:
    steps = _find_chain(anchor, known)
    if anchor.name == "metadef.contraction":
        while steps and steps[-1].fn not in _SCALES:
            steps.pop()
    if not steps:
        return
    last = steps[-1].op
    location = fuse_locations(op.location for op in (anchor, *(step.op for step in steps)))
    with ir.InsertionPoint(last), location:
        scale, shift = _compose(steps)
        last.results[0].replace_all_uses_with(_rebuild(anchor, scale, shift))
    for step in reversed(steps):
        step.op.erase()
    anchor.erase()


def _find_chain(anchor: ir.Operation, known: Collection[ir.Value]) -> list[Step]:
    steps: list[Step] = []
    value = anchor.results[0]
    axis = _channel_axis(anchor)
    while len(uses := list(value.uses)) == 1:
        op, position = uses[0].owner.operation, uses[0].operand_number
        fn = text(op, "fn") if op.name == "metadef.pointwise" else ""
        if fn not in _AFFINE or (fn == "div" and position == 1):
            break
        other = op.operands[1 - position]
        if (
            other not in known
            or op.results[0].type != value.type
            or not _varies_along(other, axis, shape_of(value).rank)
        ):
            break
        steps.append(Step(op, fn, other, position == 1))
        value = op.results[0]
    return steps


def _compose(steps: Sequence[Step]) -> tuple[ir.Value | None, ir.Value | None]:
    """Return (s, t) of rank 1 or 0 such that the chain is `y * s + t`; None for 1 and 0."""
    scale: ir.Value | None = None
    shift: ir.Value | None = None
    for step in steps:
        c = _flat(step.other)
        if step.fn in _SCALES:
            if scale is None:
                scale = c if step.fn == "mul" else pointwise("reciprocal", c)
            else:
                scale = pointwise(step.fn, scale, c)
            shift = None if shift is None else pointwise(step.fn, shift, c)
        elif step.fn == "add":
            shift = c if shift is None else pointwise("add", shift, c)
        elif step.reversed:
            scale = _minus_one(c) if scale is None else pointwise("neg", scale)
            shift = c if shift is None else pointwise("sub", c, shift)
        else:
            shift = pointwise("neg", c) if shift is None else pointwise("sub", shift, c)
    return scale, shift


def _minus_one(like: ir.Value) -> ir.Value:
    return fill([], -1, shape_of(like).element)


def _rebuild(anchor: ir.Operation, scale: ir.Value | None, shift: ir.Value | None) -> ir.Value:
    x, w, *bias = anchor.operands
    if anchor.name == "metadef.contraction":
        assert scale is not None, "a chain after a contraction ends in a scale"
        transposed = boolean(anchor, "transpose_rhs")
        if transposed and shape_of(scale).rank == 1:
            scale = reshape(scale, [*shape_of(scale).dims, 1])
        matrix = pointwise("mul", w, scale)
        y = contraction(x, matrix, boolean(anchor, "transpose_lhs"), transposed)
        return y if shift is None else pointwise("add", y, shift)
    channels = shape_of(anchor.results[0]).dims[_channel_axis(anchor)]
    offset = bias[0] if bias else None
    if scale is not None:
        w = _scale_weight(anchor, w, scale)
        offset = None if offset is None else pointwise("mul", offset, scale)
    if shift is not None:
        offset = shift if offset is None else pointwise("add", offset, shift)
    if offset is not None and shape_of(offset).dims != (channels,):
        offset = broadcast(offset, [channels])
    geometry = {name: integers(anchor, name) for name in ("strides", "padding", "dilations")}
    groups = integer(anchor, "groups")
    if anchor.name == "metadef.conv":
        return conv(x, w, offset, **geometry, groups=groups, layout=text(anchor, "layout"))
    extra = integers(anchor, "output_padding")
    return conv_transpose(x, w, offset, **geometry, groups=groups, output_padding=extra)


def _scale_weight(anchor: ir.Operation, w: ir.Value, scale: ir.Value) -> ir.Value:
    """Return w times the scale of the output channel that each of its elements counts towards."""
    dims = shape_of(w).dims
    if shape_of(scale).rank == 0:
        return pointwise("mul", w, scale)
    groups = integer(anchor, "groups")
    if anchor.name == "metadef.conv":
        if text(anchor, "layout") == "nchw":
            return pointwise("mul", w, reshape(scale, [dims[0]] + [ONE] * (len(dims) - 1)))
        return pointwise("mul", w, reshape(scale, [groups, *[1] * (len(dims) - 2), dims[-1]]))
    split = reshape(w, [groups, dims[0] // groups, *dims[1:]])
    along = reshape(scale, [groups, 1, dims[1], *[1] * (len(dims) - 2)])
    return reshape(pointwise("mul", split, along), dims)


def _channel_axis(anchor: ir.Operation) -> int:
    rank = shape_of(anchor.results[0]).rank
    if anchor.name == "metadef.contraction":
        return rank - 1
    if anchor.name == "metadef.conv" and text(anchor, "layout") == "nhwc":
        return rank - 1
    return 1


def _varies_along(value: ir.Value, axis: int, rank: int) -> bool:
    """Return whether only the dim that meets `axis` of a tensor of `rank` may be other than 1."""
    dims = shape_of(value).dims
    offset = rank - len(dims)
    return all(d == ONE for i, d in enumerate(dims) if i + offset != axis)


def _flat(value: ir.Value) -> ir.Value:
    """Return a tensor of one dim that is not 1 without the others."""
    dims = [d for d in shape_of(value).dims if d != ONE]
    return value if len(dims) == shape_of(value).rank else reshape(value, dims)

"""Bring matrix products to few forms: no transposes, no broadcasts, one batch of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, choice, integer, integers, real, text
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.norm import KINDS, norm
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.softmax import softmax
from metadef.dialects.metadef.shapes import ONE, broadcast_dims, shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.rewrite import apply_patterns, pattern
from metadef.symbolic import Dim, product

from ._attention_heads import read_broadcast_mask_directly, read_repeated_heads_directly
from ._buffers import owner_of
from ._identities import fold_reshape, fold_transpose, producer
from ._permutations import swaps_last_two
from ._reshapes import groups_of, reshaped


@dataclass(frozen=True)
class CanonicalizeContractions(Pass):
    """Fold transposes, broadcasts and batch dims into contractions, and 1x1 convolutions too.

    Before:
        %0 = "metadef.transpose"(%w) <{perm = array<i64: 1, 0>}> : [N, K] -> [K, N]
        %1 = "metadef.contraction"(%x, %0) : [B, S, K] x [K, N] -> [B, S, N]
        %2 = "metadef.pointwise"(%1, %b) <{fn = "add"}> : [B, S, N], [N]
    After:
        %0 = "metadef.reshape"(%x) : [B, S, K] -> [B*S, K]
        %1 = "metadef.contraction"(%0, %w) <{transpose_rhs = true}> : [B*S, K] x [N, K]
        %2 = "metadef.pointwise"(%1, %b) <{fn = "add"}> : [B*S, N], [N]
        %3 = "metadef.reshape"(%2) : [B*S, N] -> [B, S, N]

    Reshapes sink below pointwise ops, norms and softmaxes that do not look across the merged dims,
    so that an epilogue stands next to its contraction. A pointwise add of a bias stays what it is.
    """

    accepts = FRONT
    requires = "metadef ops on tensors"
    leaves = "contractions of plain operands; a product by one matrix has rank 2"

    def run(self, module: ir.Operation) -> None:
        apply_patterns(
            module,
            [
                fold_transpose_into_operand,
                fold_transpose_of_result,
                read_broadcast_batch_directly,
                turn_pointwise_conv_into_contraction,
                read_repeated_heads_directly,
                read_broadcast_mask_directly,
                merge_rows,
                sink_reshape_below_pointwise,
                sink_reshape_below_norm,
                sink_reshape_below_softmax,
                fold_reshape,
                fold_transpose,
            ],
        )


@pattern("metadef.contraction")
def fold_transpose_into_operand(op: Any) -> ir.Value | None:
    """contraction(transpose(a), b) -> contraction(a, b) with the flag turned (also for b)."""
    operands, flags = list(op.operands), _flags(op)
    for i in (0, 1):
        inner = producer(operands[i], "transpose")
        if inner is not None and swaps_last_two(integers(inner, "perm")):
            operands[i] = inner.operands[0]
            flags[i] = not flags[i]
    if operands == list(op.operands):
        return None
    return contraction(*operands, *flags)


@pattern("metadef.transpose")
def fold_transpose_of_result(op: Any) -> ir.Value | None:
    """transpose(a @ b) -> b^T @ a^T, when the product has no other use."""
    inner = producer(op.operands[0], "contraction")
    if inner is None or not swaps_last_two(integers(op, "perm")) or not _used_once(inner):
        return None
    transpose_lhs, transpose_rhs = _flags(inner)
    lhs, rhs = inner.operands
    return contraction(rhs, lhs, not transpose_rhs, not transpose_lhs)


@pattern("metadef.contraction")
def read_broadcast_batch_directly(op: Any) -> ir.Value | None:
    """contraction(broadcast(a), b) -> contraction(a, b): batch dims broadcast by themselves."""
    operands = list(op.operands)
    batch = shape_of(op.results[0]).dims[:-2]
    for i in (0, 1):
        source = operands[i]
        inner = producer(source, "broadcast")
        if inner is not None:
            source = inner.operands[0]
        dims = shape_of(source).dims
        if len(dims) < 2 or dims[-2:] != shape_of(operands[i]).dims[-2:]:
            continue
        kept = list(dims)
        while len(kept) > 2 and kept[0] == ONE:
            kept.pop(0)
        if len(kept) == shape_of(operands[i]).rank:
            continue
        other = shape_of(operands[1 - i]).dims[:-2]
        if broadcast_dims(kept[:-2], other) == batch:
            operands[i] = source if len(kept) == len(dims) else reshaped(source, kept)
    if operands == list(op.operands):
        return None
    return contraction(*operands, *_flags(op))


@pattern("metadef.contraction")
def merge_rows(op: Any) -> ir.Value | None:
    """[B.., M, K] @ [K, N] -> [B*..*M, K] @ [K, N]: one large product by the same matrix."""
    lhs, rhs = op.operands
    flags = _flags(op)
    dims = shape_of(lhs).dims
    if shape_of(rhs).rank != 2 or len(dims) == 2 or flags[0]:
        return None
    rows = reshaped(lhs, [product(dims[:-1]), dims[-1]])
    return reshaped(contraction(rows, rhs, *flags), shape_of(op.results[0]).dims)


@pattern("metadef.conv")
def turn_pointwise_conv_into_contraction(op: Any) -> ir.Value | None:
    """A convolution by a 1x1 kernel, channels last, is a product of all pixels by one matrix."""
    x, w = op.operands[0], op.operands[1]
    kernel = shape_of(w).dims
    if (
        text(op, "layout") != "nhwc"
        or integer(op, "groups") != 1
        or any(d != ONE for d in kernel[1:-2])
        or any(s != 1 for s in integers(op, "strides"))
        or any(integers(op, "padding"))
    ):
        return None
    dims = shape_of(x).dims
    pixels = reshaped(x, [product(dims[:-1]), dims[-1]])
    y = contraction(pixels, reshaped(w, kernel[-2:]))
    if len(op.operands) == 3:
        y = pointwise("add", y, op.operands[2])
    return reshaped(y, shape_of(op.results[0]).dims)


@pattern("metadef.pointwise")
def sink_reshape_below_pointwise(op: Any) -> ir.Value | None:
    """f(reshape(x), y) -> reshape(f(x, y')), where y' is y without the dims that were split.

    y' exists when y has the result's dims (then it is a reshape of y), or its dims are 1 except
    trailing ones that the reshape leaves alone (a scalar, a bias). A reshape of another kind sinks
    when the other operands are reshapes of the same kind, or broadcast all or nothing of the dims
    that it merges or splits.
    """
    result = shape_of(op.results[0])
    source = _merged_source(op, result.dims)
    splits_rows = source is not None
    if source is None:
        source = _computed_source(op, result.dims)
    if source is None:
        return None
    merged = shape_of(source).dims
    operands: list[ir.Value] = []
    for value in op.operands:
        with_dims = _with_dims if splits_rows else _with_same_dims
        other = with_dims(value, result.dims, merged)
        if other is None:
            return None
        operands.append(other)
    y = pointwise(text(op, "fn"), *operands, element=result.element)
    return reshaped(y, result.dims)


@pattern("metadef.norm")
def sink_reshape_below_norm(op: Any) -> ir.Value | None:
    """norm(reshape(x)) -> reshape(norm(x)), when the normalised axes are left alone."""
    result = shape_of(op.results[0])
    source = _sinkable(op.operands[0])
    axes = integer(op, "axes")
    if source is None or shape_of(source).dims[-axes:] != result.dims[-axes:]:
        return None
    if shape_of(source).rank <= axes:
        return None
    y = norm(
        source,
        *list(op.operands)[1:],
        kind=choice(op, "kind", KINDS),
        axes=axes,
        eps=real(op, "eps"),
    )
    return reshaped(y, result.dims)


@pattern("metadef.softmax")
def sink_reshape_below_softmax(op: Any) -> ir.Value | None:
    """softmax(reshape(x)) -> reshape(softmax(x)) along a last dim that is left alone."""
    result = shape_of(op.results[0])
    source = _sinkable(op.operands[0])
    if source is None or integer(op, "dim") != result.rank - 1:
        return None
    return reshaped(softmax(source, -1, boolean(op, "log")), result.dims)


def _sinkable(value: ir.Value) -> ir.Value | None:
    """Return the source of a reshape that only splits the first dim: [M, t..] to [d.., t..]."""
    inner = producer(value, "reshape")
    if inner is None:
        return None
    source: ir.Value = inner.operands[0]
    merged, split = shape_of(source).dims, shape_of(value).dims
    kept = len(merged) - 1
    if kept < 1 or len(split) < len(merged) + 1 or merged[1:] != split[-kept:]:
        return None
    return source


def _merged_source(op: Any, dims: tuple[Dim, ...]) -> ir.Value | None:
    for value in op.operands:
        if shape_of(value).dims == dims and (source := _sinkable(value)) is not None:
            return source
    return None


def _computed_source(op: Any, dims: tuple[Dim, ...]) -> ir.Value | None:
    """Return the source of an operand that is a reshape of what an op computes."""
    for value in op.operands:
        inner = producer(value, "reshape")
        if inner is not None and shape_of(value).dims == dims:
            source: ir.Value = inner.operands[0]
            owner = owner_of(source)
            if owner is not None and owner.name not in ("metadef.weight", "metadef.reshape"):
                return source
    return None


def _with_same_dims(
    value: ir.Value, split: tuple[Dim, ...], merged: tuple[Dim, ...]
) -> ir.Value | None:
    """Return the source, of dims `merged`, of a reshape to `split`; or what broadcasts to `split`,
    such as a bias of channels, under dims that broadcast to `merged`."""
    dims = shape_of(value).dims
    if dims == split:
        back = reshaped(value, merged)
        return back if producer(back, "reshape") is None else None
    if all(d == ONE for d in dims):
        return reshaped(value, [])
    dims = (*[ONE] * (len(split) - len(dims)), *dims)
    under = list(merged)
    for here, there in groups_of(merged, split) or ():
        if all(dims[i] == ONE for i in there):
            under[here.start : here.stop] = [ONE] * len(here)
        elif any(dims[i] != split[i] for i in there):
            return None
    return None if under == list(merged) else reshaped(value, under)


def _with_dims(value: ir.Value, split: tuple[Dim, ...], merged: tuple[Dim, ...]) -> ir.Value | None:
    """Return an operand of an op over `split` dims for the same op over `merged` dims, or None."""
    dims = shape_of(value).dims
    if dims == split:
        return reshaped(value, merged)
    core = list(dims)
    while core and core[0] == ONE:
        core.pop(0)
    if len(core) >= len(merged):
        return None
    return value if len(core) == len(dims) else reshaped(value, core)


def _flags(op: Any) -> list[bool]:
    return [boolean(op, "transpose_lhs"), boolean(op, "transpose_rhs")]


def _used_once(op: Any) -> bool:
    return len(list(op.results[0].uses)) == 1

"""Recognise norms that a model spells out in pointwise ops and reductions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, integers, real, text
from metadef.dialects.metadef.ops.norm import norm
from metadef.dialects.metadef.shapes import shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.rewrite import apply_patterns, pattern

from ._identities import producer, splat_of
from ._locations import fuse_locations


@dataclass(frozen=True)
class RaiseNorms(Pass):
    """Turn a root-mean-square norm that is spelled out into `norm`.

    Before:
        %0 = "metadef.pointwise"(%x, %x) <{fn = "mul"}>
        %1 = "metadef.reduce"(%0) <{fn = "mean", dims = [-1], keepdim = true}>
        %2 = "metadef.pointwise"(%1, %eps) <{fn = "add"}>
        %3 = "metadef.pointwise"(%2) <{fn = "rsqrt"}>
        %4 = "metadef.pointwise"(%x, %3) <{fn = "mul"}>
        %5 = "metadef.pointwise"(%w, %4) <{fn = "mul"}>
    After:
        %0 = "metadef.norm"(%x, %w) <{kind = "rms", axes = 1, eps = 1.0e-6}>

    One kernel then reads a row once, where the parts would read it twice or three times.
    """

    accepts = FRONT
    requires = "metadef ops on tensors, constants folded"
    leaves = "the same; what the norms replace is dead"

    def run(self, module: ir.Operation) -> None:
        apply_patterns(module, [raise_rms_norm, fold_scale_into_norm])


@pattern("metadef.pointwise")
def raise_rms_norm(op: Any) -> ir.Value | None:
    """x * rsqrt(mean(x * x) + eps) -> norm(x)."""
    if text(op, "fn") != "mul":
        return None
    for x, factor in (op.operands, reversed(list(op.operands))):
        eps = _mean_square_epsilon(factor, x)
        if eps is not None and x.type == op.results[0].type:
            with fuse_locations([factor.owner.location, op.location]):
                return norm(x, kind="rms", axes=1, eps=eps)
    return None


@pattern("metadef.pointwise")
def fold_scale_into_norm(op: Any) -> ir.Value | None:
    """norm(x) * w -> norm(x, w), for a norm without scale over one axis and w along it."""
    if text(op, "fn") != "mul":
        return None
    for value, scale in (op.operands, reversed(list(op.operands))):
        inner = producer(value, "norm")
        if (
            inner is not None
            and len(inner.operands) == 1
            and integer(inner, "axes") == 1
            and shape_of(scale).dims == shape_of(value).dims[-1:]
            and len(list(value.uses)) == 1
        ):
            kind, eps = text(inner, "kind"), real(inner, "eps")
            with fuse_locations([inner.location, op.location]):
                return norm(inner.operands[0], scale, kind=kind, axes=1, eps=eps)
    return None


def _mean_square_epsilon(factor: ir.Value, x: ir.Value) -> float | None:
    """Return eps when `factor` is rsqrt(mean(x * x) + eps) along the last axis of x."""
    root = _pointwise(factor, "rsqrt")
    total = None if root is None else _pointwise(root.operands[0], "add")
    if total is None:
        return None
    mean, epsilon = total.operands
    if splat_of(epsilon) is None:
        mean, epsilon = epsilon, mean
    eps = splat_of(epsilon)
    reduction = producer(mean, "reduce")
    if eps is None or reduction is None or text(reduction, "fn") != "mean":
        return None
    rank = shape_of(x).rank
    if integers(reduction, "dims") != [rank - 1] or not boolean(reduction, "keepdim"):
        return None
    return float(eps) if _is_square(reduction.operands[0], x) else None


def _is_square(value: ir.Value, x: ir.Value) -> bool:
    product = _pointwise(value, "mul")
    if product is not None:
        return all(v == x for v in product.operands)
    power = _pointwise(value, "pow")
    return power is not None and power.operands[0] == x and splat_of(power.operands[1]) == 2


def _pointwise(value: ir.Value, fn: str) -> Any:
    op = producer(value, "pointwise")
    return op if op is not None and text(op, "fn") == fn else None

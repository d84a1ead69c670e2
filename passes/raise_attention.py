"""Recognise attention that a model spells out in products and a softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, integers, text
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.rewrite import apply_patterns, pattern

from ._identities import producer, splat_of
from ._locations import fuse_locations
from ._permutations import swaps_last_two


@dataclass(frozen=True)
class RaiseAttention(Pass):
    """Turn attention that is spelled out into `attention`.

    Before:
        %0 = "metadef.transpose"(%k) <{perm = [0, 1, 3, 2]}>
        %1 = "metadef.contraction"(%q, %0)
        %2 = "metadef.pointwise"(%1, %scale) <{fn = "mul"}>
        %3 = "metadef.pointwise"(%2, %mask) <{fn = "add"}>
        %4 = "metadef.softmax"(%3) <{dim = 3}>
        %5 = "metadef.contraction"(%4, %v)
    After:
        %0 = "metadef.attention"(%q, %k, %v, %mask) <{scale = 0.125, safe = false}>

    The scores are then never written. What was spelled out keeps its meaning: a row that a mask
    leaves nothing of is NaN.
    """

    accepts = FRONT
    requires = "metadef ops on tensors, constants folded"
    leaves = "the same; what the attention replaces is dead"

    def run(self, module: ir.Operation) -> None:
        apply_patterns(module, [raise_attention])


@dataclass(frozen=True)
class _Scores:
    """What a softmax is taken of: scale * q k^T, then a mask; q and k as (operand, transposed)."""

    q: tuple[ir.Value, bool]
    k: tuple[ir.Value, bool]
    scale: float = 1.0
    mask: ir.Value | None = None
    #: the mask is i1 and true where a score is dropped
    drops: bool = False


@pattern("metadef.contraction")
def raise_attention(op: Any) -> ir.Value | None:
    """softmax(q @ k^T * scale + mask) @ v -> attention(q, k, v, mask)."""
    weights, v = op.operands
    softmax = None if boolean(op, "transpose_lhs") else _read_once(weights, "softmax")
    dims = shape_of(weights).dims
    if softmax is None or boolean(softmax, "log") or integer(softmax, "dim") != len(dims) - 1:
        return None
    scores = _scores_of(softmax.operands[0]) if len(dims) > 2 else None
    if scores is None:
        return None
    q_dims, k_dims, v_dims = (shape_of(t).dims for t in (scores.q[0], scores.k[0], v))
    lead = dims[:-2]
    if (
        q_dims[:-2] != lead
        or shape_of(op.results[0]).dims[:-2] != lead
        or not len(k_dims) == len(v_dims) == len(dims)
        or k_dims[-3] != v_dims[-3]
        or k_dims[-3] not in (lead[-1], ONE)
    ):
        return None
    with fuse_locations([softmax.location, op.location]):
        q, k, v = _turned(*scores.q), _turned(*scores.k), _turned(v, boolean(op, "transpose_rhs"))
        mask = scores.mask
        if mask is not None and scores.drops:
            mask = pointwise("not", mask)
        return attention(q, k, v, mask, scale=scores.scale, safe=False)


def _scores_of(value: ir.Value) -> _Scores | None:
    """Return how a product of q and k became `value`, when nothing else reads what is between."""
    product = _read_once(value, "contraction")
    if product is not None:
        lhs, rhs = product.operands
        # [.., E, S] is k^T, and k is its transpose.
        turned = not boolean(product, "transpose_rhs")
        return _Scores((lhs, boolean(product, "transpose_lhs")), (rhs, turned))
    op = _read_once(value, "pointwise")
    if op is None:
        return None
    fn, operands = text(op, "fn"), list(op.operands)
    if fn == "select":
        return _masked(value, *operands)
    for x, other in (operands, operands[::-1]) if fn in ("add", "mul") else ():
        scores, number = _unmasked(x, value), splat_of(other)
        if scores is not None and fn == "add":
            return replace(scores, mask=other)
        if scores is not None and number is not None:
            return replace(scores, scale=scores.scale * number)
    if fn == "div" and (number := splat_of(operands[1])):
        scores = _unmasked(operands[0], value)
        return scores and replace(scores, scale=scores.scale / number)
    return None


def _masked(
    value: ir.Value, condition: ir.Value, taken: ir.Value, other: ir.Value
) -> _Scores | None:
    """Return the scores in `value` = select(condition, taken, other), if one of these is -inf."""
    for x, dropped, drops in ((taken, other, False), (other, taken, True)):
        if splat_of(dropped) == -math.inf and (scores := _unmasked(x, value)) is not None:
            return replace(scores, mask=condition, drops=drops)
    return None


def _unmasked(x: ir.Value, result: ir.Value) -> _Scores | None:
    """Return the scores in x, unless they have a mask already or are stretched to `result`."""
    scores = _scores_of(x) if x.type == result.type else None
    return None if scores is None or scores.mask is not None else scores


def _read_once(value: ir.Value, name: str) -> Any:
    """Return the op `metadef.<name>` that makes `value` when nobody else reads it, or None."""
    return producer(value, name) if len(list(value.uses)) == 1 else None


def _turned(value: ir.Value, turn: bool) -> ir.Value:
    """Return `value`, its last two dims exchanged if told."""
    if not turn:
        return value
    inner = producer(value, "transpose")
    if inner is not None and swaps_last_two(integers(inner, "perm")):
        return inner.operands[0]
    rank = shape_of(value).rank
    return transpose(value, [*range(rank - 2), rank - 1, rank - 2])

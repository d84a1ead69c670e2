"""Attention: scores, a row softmax and the weighted sum of values, all over the same rows.

The temporaries are [B.., Hkv, G, L, S]; `vectorize` shares the row loops, so that no more than a
block of rows of them ever exists.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, real
from metadef.symbolic import Dim, same

from . import views
from .contraction import multiply_add
from .conv import as_dims
from .expression import (
    Constant,
    Expr,
    Value,
    apply,
    cast,
    constant_expr,
    index,
    narrow,
)
from .expression import boolean as i1
from .kernel import Kernel, accumulator_type, broadcast, result_type
from .reduce import fold


def lower_attention(kernel: Kernel, op: Any) -> list[Value]:
    """scores = q k^T; scaled and masked; exp(s - max) and its sum; (exp v) / sum at the end.

    Heads that share keys are a loop of their own: H is split into (Hkv, G).
    """
    operands = list(op.operation.operands)
    dims, element = result_type(op)
    q, k, v = (kernel.loaded(x) for x in operands[:3])
    wide = accumulator_type(element)
    heads, kv_heads = q.dims[-3], k.dims[-3]
    grouped = same(heads, kv_heads) is not True
    split = [kv_heads, heads // kv_heads] if grouped else [heads]
    if grouped:
        q = as_dims(kernel, q, [*q.dims[:-3], *split, *q.dims[-2:]])
    lead = [*dims[:-3], *split]
    rows, keys = q.dims[-2], k.dims[-2]
    space = (*lead, rows, keys)

    at = len(lead)
    scores = _product(kernel, (q, False), (k, False, grouped), lead, (rows, keys, q.dims[-1]), wide)
    scaled = _scaled(scores.expr, real(op, "scale"))
    masked = _masked(kernel, scaled, op, operands[3:], space, (*dims[:-3], heads, rows, keys))
    weights = Value(space, masked)
    if masked is not scores.expr:
        weights = kernel.store(weights)
    # Rows without keys give 0: there are none at all, or the mask drops them and that is `safe`.
    masked_out = len(operands) == 4 and boolean(op, "safe")
    top = fold(kernel, weights, "greatest", [at + 1], None)
    shift = _unless(top.expr, -math.inf, 0.0) if masked_out else top.expr
    exponential = kernel.store(Value(space, apply("exp", apply("sub", weights.expr, shift))))
    total = fold(kernel, exponential, "sum", [at + 1], None)
    sums = _product(
        kernel, (exponential, True), (v, True, grouped), lead, (rows, v.dims[-1], keys), wide
    )
    # A row's sum moves with the leading dims only: its expression is one in the result's space.
    inverse: Expr = apply("reciprocal", total.expr)
    if masked_out or same(keys, 0) is not False:
        empty = apply("eq", total.expr, Constant(wide, 0.0), element=i1())
        inverse = apply("select", empty, Constant(wide, 0.0), inverse)
    value = Value(sums.dims, narrow(apply("mul", sums.expr, inverse), element))
    return [views.reshape(kernel, value, dims)]


def _product(
    kernel: Kernel,
    lhs: tuple[Value, bool],
    rhs: tuple[Value, bool, bool],
    lead: Sequence[Dim],
    sizes: tuple[Dim, Dim, Dim],
    element: ir.Type,
) -> Value:
    """Emit [lead.., M, K] x [.., N, K] (or [.., K, N] if told) over lead, M, N and a sum over K.

    `lhs` says whether it has all of `lead` already; `rhs` whether K comes first, and whether its
    heads are shared by the last of `lead`.
    """
    rank = len(lead)
    m, n, k = (ir.AffineExpr.get_dim(rank + i) for i in range(3))
    left = [*_lead_positions(lhs[0].dims[:-2], lead), m, k]
    shared = lead[:-1] if rhs[2] else lead
    right = [*_lead_positions(rhs[0].dims[:-2], shared), *((k, n) if rhs[1] else (n, k))]
    return multiply_add(
        kernel,
        [*lead, *sizes],
        ["parallel"] * (rank + 2) + ["reduction"],
        (lhs[0], left),
        (rhs[0], right),
        [*lead, *sizes[:2]],
        element,
        None,
    )


def _lead_positions(dims: Sequence[Dim], lead: Sequence[Dim]) -> list[ir.AffineExpr]:
    offset = len(lead) - len(dims)
    return [
        constant_expr(0)
        if same(d, 1) and not same(lead[i + offset], 1)
        else ir.AffineExpr.get_dim(i + offset)
        for i, d in enumerate(dims)
    ]


def _scaled(scores: Expr, scale: float) -> Expr:
    return scores if scale == 1.0 else apply("mul", scores, Constant(scores.element, scale))


def _masked(
    kernel: Kernel,
    scores: Expr,
    op: Any,
    mask: list[ir.Value],
    space: tuple[Dim, ...],
    unsplit: tuple[Dim, ...],
) -> Expr:
    """Return the scores with -inf where the mask or causality drops them."""
    dropped = Constant(scores.element, -math.inf)
    if mask:
        value = kernel.value(mask[0])
        kept = as_dims(kernel, broadcast(value, unsplit), space).expr
        if value.element == i1():
            scores = apply("select", kept, scores, dropped)
        else:
            scores = apply("add", scores, cast(kept, scores.element))
    if boolean(op, "causal"):
        row, key = (index(ir.AffineExpr.get_dim(len(space) - i)) for i in (2, 1))
        scores = apply("select", apply("le", key, row, element=i1()), scores, dropped)
    return scores


def _unless(value: Expr, number: float, instead: float) -> Expr:
    hit = apply("eq", value, Constant(value.element, number), element=i1())
    return apply("select", hit, Constant(value.element, instead), value)

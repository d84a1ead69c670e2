"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.shapes import broadcast_dims

from . import build
from .backward import attention_scores
from .build import cast, dims, rank
from .call import Call
from .dtypes import is_bool, is_float
from .reduce import log_sum_exp
from .registry import NotModelled, converts


@converts("aten.scaled_dot_product_attention", "aten._scaled_dot_product_attention_math")
def scaled_dot_product_attention(
    call: Call,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    mask: ir.Value | None,
    dropout: float,
    causal: bool,
    *options: Any,
) -> Any:
    """q [B.., H, L, E]; the heads of k and v are repeated where q has more (grouped queries)."""
    math_form = call.name.endswith("_math")
    scale = options[1] if math_form else options[0]
    if dropout != 0 or (math_form and call.used(1)):
        raise NotModelled
    result = _attention(q, k, v, mask, causal, scale)
    return (result, None) if math_form else result


@converts("aten._scaled_dot_product_flash_attention_for_cpu")
def flash_attention_for_cpu(
    call: Call,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    dropout: float,
    causal: bool,
    mask: ir.Value | None,
    scale: float | None,
    *options: Any,
) -> tuple[Any, Any]:
    """The second result, the log of the softmax's sums, is for training."""
    if dropout != 0:
        raise NotModelled
    result = _attention(q, k, v, mask, causal, scale)
    if not call.used(1):
        return result, None
    if dims(q)[-3] != dims(k)[-3]:
        raise NotModelled
    scores, _ = attention_scores(q, k, mask, causal, scale)
    return result, log_sum_exp(scores, [rank(q) - 1], keepdim=False)


def _attention(
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    mask: ir.Value | None,
    causal: bool,
    scale: Any,
) -> ir.Value:
    head = dims(q)[-1]
    if scale is None:
        if not head.is_static or head.value == 0:
            raise NotModelled
        scale = 1 / math.sqrt(head.value)
    if not isinstance(scale, int | float) or not is_float(build.element(q)):
        raise NotModelled
    if not rank(q) == rank(k) == rank(v) or rank(q) < 2:
        raise NotModelled
    if mask is not None and not is_bool(build.element(mask)):
        mask = cast(mask, build.element(q))
    if rank(q) == 2:
        q, k, v = (build.unsqueeze(t, 0) for t in (q, k, v))
        result = attention(q, k, v, mask, causal=causal, scale=scale)
        return build.reshape(result, dims(result)[1:])
    if build.is_one([dims(k)[-3]]) and not build.is_one([dims(v)[-3]]):
        raise NotModelled
    batch = broadcast_dims(dims(q)[:-3], dims(k)[:-3], dims(v)[:-3])
    q, k, v = (build.broadcast(t, [*batch, *dims(t)[-3:]]) for t in (q, k, v))
    if build.is_one([dims(q)[-3]]):  # one head of q for every head of k and v
        q = build.broadcast(q, [*batch, dims(k)[-3], *dims(q)[-2:]])
    return attention(q, k, v, mask, causal=causal, scale=scale)

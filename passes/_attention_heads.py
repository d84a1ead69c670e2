"""Attention reads repeated heads and broadcast masks without their copies."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, real
from metadef.dialects.metadef.ops.attention import attention
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.rewrite import pattern

from ._identities import producer
from ._reshapes import reshaped


@pattern("metadef.attention")
def read_repeated_heads_directly(op: Any) -> ir.Value | None:
    """attention(q, repeat(k), repeat(v)) -> attention(q, k, v): a head of k serves several of q.

    Idea's other names: grouped-query attention, `repeat_kv`.
    """
    q, k, v, *mask = op.operands
    keys, values = _unrepeated(k), _unrepeated(v)
    if keys is None or values is None or shape_of(keys).dims[-3] != shape_of(values).dims[-3]:
        return None
    return attention(q, keys, values, *mask, **_options(op))


@pattern("metadef.attention")
def read_broadcast_mask_directly(op: Any) -> ir.Value | None:
    """attention(q, k, v, broadcast(m)) -> attention(q, k, v, m): a mask broadcasts by itself."""
    if len(op.operands) != 4:
        return None
    q, k, v, mask = op.operands
    stretched = producer(mask, "broadcast")
    if stretched is None:
        return None
    source = stretched.operands[0]
    return attention(q, k, v, source, **_options(op))


def _options(op: Any) -> dict[str, Any]:
    return {
        "causal": boolean(op, "causal"),
        "scale": real(op, "scale"),
        "safe": boolean(op, "safe"),
    }


def _unrepeated(value: ir.Value) -> ir.Value | None:
    """Return x [B.., H, S, E] of a value that repeats each of its heads, [B.., H*n, S, E].

    Such a value is reshape(broadcast(y)), y [B.., H, 1, S, E] to [B.., H, n, S, E].
    """
    merged = producer(value, "reshape")
    stretched = None if merged is None else producer(merged.operands[0], "broadcast")
    if stretched is None:
        return None
    source, wide = shape_of(stretched.operands[0]).dims, shape_of(merged.operands[0]).dims
    dims = shape_of(value).dims
    heads = len(dims) - 3
    if (
        len(wide) != len(dims) + 1
        or len(source) != len(wide)
        or source[heads + 1] != ONE
        or wide != (*source[: heads + 1], wide[heads + 1], *source[heads + 2 :])
        or dims != (*wide[:heads], wide[heads] * wide[heads + 1], *wide[heads + 2 :])
    ):
        return None
    return reshaped(stretched.operands[0], [*source[: heads + 1], *source[heads + 2 :]])

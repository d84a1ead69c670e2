"""Reference of the multiply-and-add ops: contraction, conv, conv_transpose, attention."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


def _contraction(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    lhs, rhs = operands
    if op.attributes["transpose_lhs"].value:
        lhs = lhs.swapaxes(-1, -2)
    if op.attributes["transpose_rhs"].value:
        rhs = rhs.swapaxes(-1, -2)
    # A narrower rhs is widened; bf16 is f32 here.
    return np.matmul(lhs, rhs.astype(lhs.dtype, copy=False))


def window_view(x: Array, kernel: Sequence[int], strides: Any, dilations: Any) -> Array:
    """Return the windows of x [N, C, spatial..] as [N, C, windows.., kernel..], without a copy."""
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilations, strict=True)]
    axes = tuple(range(2, x.ndim))
    views = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = [slice(None, None, s) for s in strides] + [slice(None, None, d) for d in dilations]
    result: Array = views[(slice(None), slice(None), *steps)]
    return result


def pad_spatial(x: Array, padding: Sequence[int], value: Any) -> Array:
    """Return x [N, C, spatial..] padded by (low, high) for each spatial dim."""
    pairs = [(padding[2 * i], padding[2 * i + 1]) for i in range(x.ndim - 2)]
    return np.pad(x, [(0, 0), (0, 0), *pairs], constant_values=value)


def _conv(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    x, w, *bias = operands
    groups = op.attributes["groups"].value
    nhwc = op.attributes["layout"].value == "nhwc"
    if nhwc:
        x = np.moveaxis(x, -1, 1)
        # [g, k.., I/g, O/g] to [g, O/g, I/g, k..] to [O, I/g, k..]
        w = np.moveaxis(np.moveaxis(w, -1, 1), -1, 2)
        w = w.reshape(w.shape[0] * w.shape[1], *w.shape[2:])
    x = pad_spatial(x, list(op.attributes["padding"]), 0)
    kernel = w.shape[2:]
    views = window_view(x, kernel, op.attributes["strides"], op.attributes["dilations"])
    spatial = len(kernel)
    taps = tuple(range(2 + spatial, 2 + 2 * spatial))
    parts = []
    for xs, ws in zip(np.split(views, groups, 1), np.split(w, groups, 0), strict=True):
        # [N, windows.., O/g]
        parts.append(np.tensordot(xs, ws, ((1, *taps), (1, *range(2, 2 + spatial)))))
    result = np.concatenate(parts, axis=-1)
    if bias:
        result = result + bias[0]
    return result if nhwc else np.moveaxis(result, -1, 1)


def _conv_transpose(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    x, w, *bias = operands
    groups = op.attributes["groups"].value
    strides, dilations = list(op.attributes["strides"]), list(op.attributes["dilations"])
    padding, extra = list(op.attributes["padding"]), list(op.attributes["output_padding"])
    sizes, kernel = x.shape[2:], w.shape[2:]
    full = [
        (n - 1) * s + d * (k - 1) + 1 + e
        for n, s, d, k, e in zip(sizes, strides, dilations, kernel, extra, strict=True)
    ]
    per_group = w.shape[1]
    result = np.zeros((x.shape[0], per_group * groups, *full), x.dtype)
    for g, (xs, ws) in enumerate(zip(np.split(x, groups, 1), np.split(w, groups, 0), strict=True)):
        channels = slice(g * per_group, (g + 1) * per_group)
        for tap in itertools.product(*map(range, kernel)):
            at: Any = (slice(None), slice(None), *tap)
            part = np.moveaxis(np.tensordot(xs, ws[at], (1, 0)), -1, 1)
            places = tuple(
                slice(t * d, t * d + (n - 1) * s + 1, s)
                for t, d, n, s in zip(tap, dilations, sizes, strides, strict=True)
            )
            result[(slice(None), channels, *places)] += part
    kept = tuple(slice(padding[2 * i], n - padding[2 * i + 1]) for i, n in enumerate(full))
    result = result[(slice(None), slice(None), *kept)]
    if bias:
        result = result + bias[0].reshape(-1, *[1] * len(sizes))
    return result


def _attention(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    q, k, v, *mask = operands
    shared = q.shape[-3] // max(k.shape[-3], 1)
    k, v = np.repeat(k, shared, -3), np.repeat(v, shared, -3)
    scores = op.attributes["scale"].value * np.matmul(q, k.swapaxes(-1, -2))
    kept = np.ones(scores.shape[-2:], bool)
    if op.attributes["causal"].value:
        kept = np.tril(kept)
    if mask and mask[0].dtype == bool:
        kept = kept & mask[0]
    elif mask:
        scores = scores + mask[0]
    scores = np.where(kept, scores, -np.inf)
    highest = np.max(scores, axis=-1, keepdims=True, initial=-np.inf)
    e = np.exp(scores - np.where(np.isneginf(highest), 0, highest))
    total = np.sum(e, axis=-1, keepdims=True)
    empty = 1 if op.attributes["safe"].value else np.nan
    return np.matmul(e / np.where(total == 0, empty, total), v)


FUNCTIONS = {
    "contraction": _contraction,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "attention": _attention,
}

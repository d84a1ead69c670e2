"""Reference of the ops that fold or order a dim: reduce, softmax, norm, scan, sort."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


def softmax(x: Array, dim: int) -> Array:
    """Return exp(x) / sum(exp(x)) along `dim`, computed stably."""
    e = np.exp(x - np.max(x, axis=dim, keepdims=True))
    result: Array = e / np.sum(e, axis=dim, keepdims=True)
    return result


def _reduce(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    fn, dims = op.attributes["fn"].value, tuple(op.attributes["dims"])
    keepdim = op.attributes["keepdim"].value
    if fn in ("argmax", "argmin"):
        result: Array = getattr(np, fn)(x, axis=dims[0], keepdims=keepdim)
        return result
    if fn in ("sum", "prod"):
        result = getattr(np, fn)(x, axis=dims, keepdims=keepdim, dtype=x.dtype)
        return result
    result = getattr(np, fn)(x, axis=dims, keepdims=keepdim)
    return result


def _softmax(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    dim = op.attributes["dim"].value
    if not x.size:
        return x
    if not op.attributes["log"].value:
        return softmax(x, dim)
    shifted = x - np.max(x, axis=dim, keepdims=True)
    result: Array = shifted - np.log(np.sum(np.exp(shifted), axis=dim, keepdims=True))
    return result


def _norm(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    x, *params = operands
    axes = tuple(range(x.ndim - op.attributes["axes"].value, x.ndim))
    if op.attributes["kind"].value == "layer":
        x = x - x.mean(axis=axes, keepdims=True)
    mean_square = np.mean(x * x, axis=axes, keepdims=True)
    result: Array = x / np.sqrt(mean_square + op.attributes["eps"].value)
    if params:
        result = result * params[0]
    return result + params[1] if len(params) > 1 else result


def _scan(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    dim, reverse = op.attributes["dim"].value, op.attributes["reverse"].value
    ufunc: Any = {
        "sum": np.add,
        "prod": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
        "logsumexp": np.logaddexp,
    }[op.attributes["fn"].value]
    if reverse:
        x = np.flip(x, dim)
    result: Array = ufunc.accumulate(x, axis=dim, dtype=x.dtype)
    return np.flip(result, dim) if reverse else result


def _sort(op: Any, operands: list[Array], symbols: Symbols) -> tuple[Array, Array]:
    (x,) = operands
    dim = op.attributes["dim"].value
    if op.attributes["descending"].value:
        # Sorting the mirror image and mirroring back keeps equal values in order.
        order = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
        indices = np.flip(x.shape[dim] - 1 - order, dim)
    else:
        indices = np.argsort(x, axis=dim, kind="stable")
    return np.take_along_axis(x, indices, dim), indices


FUNCTIONS = {
    "reduce": _reduce,
    "softmax": _softmax,
    "norm": _norm,
    "scan": _scan,
    "sort": _sort,
}

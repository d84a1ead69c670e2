"""Reference of the ops that move elements: reshape to scatter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from metadef.symbolic import Dim

from .sources import result_shape

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


def _reshape(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return operands[0].reshape(result_shape(op, symbols))


def _broadcast(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return np.broadcast_to(operands[0], result_shape(op, symbols))


def _transpose(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return operands[0].transpose(list(op.attributes["perm"]))


def _slice(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    dim, step = op.attributes["dim"].value, op.attributes["step"].value
    start = Dim.of(op.attributes["start"].value).evaluate(symbols)
    size = result_shape(op, symbols)[dim]
    return np.take(operands[0], start + step * np.arange(size), axis=dim)


def _concat(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return np.concatenate(operands, axis=op.attributes["dim"].value)


def _pad(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    low, high = list(op.attributes["low"]), list(op.attributes["high"])
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    mode = op.attributes["mode"].value
    if mode == "circular":
        return np.pad(_cut(x, low, high), widths, mode="wrap")
    if mode == "constant":
        value = np.asarray(op.attributes["value"].value, x.dtype)
        return _cut(np.pad(x, widths, constant_values=value), low, high)
    padded = np.pad(x, widths, mode="reflect" if mode == "reflect" else "edge")
    return _cut(padded, low, high)


def _cut(x: Array, low: list[int], high: list[int]) -> Array:
    """Return x without what negative padding cuts off.

    As in torch, circular cuts before it pads and reflect after: it sees the whole input.
    """
    ranges = zip(low, high, x.shape, strict=True)
    result: Array = x[tuple(slice(max(-a, 0), n - max(-b, 0)) for a, b, n in ranges)]
    return result


def _take(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return np.take(operands[0], operands[1], axis=op.attributes["dim"].value)


def _positions(indices: Array, dim: int) -> tuple[Array, ...]:
    """Return an index array a dim: every element's own place, but `indices` at `dim`."""
    grid: tuple[Array, ...] = np.indices(indices.shape, sparse=True)
    return tuple(indices if i == dim else g for i, g in enumerate(grid))


def _gather(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    x, indices = operands
    result: Array = x[_positions(indices, op.attributes["dim"].value)]
    return result


def _scatter(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    x, indices, updates = operands
    result = x.copy()
    at = _positions(indices, op.attributes["dim"].value)
    values = updates[tuple(slice(n) for n in indices.shape)]
    reduce = op.attributes["reduce"].value
    if reduce == "none":
        result[at] = values
    else:
        combine: Any = {
            "add": np.add,
            "mul": np.multiply,
            "max": np.maximum,
            "min": np.minimum,
        }[reduce]
        combine.at(result, at, values)
    return result


def _index_put(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    x, updates, *indices = operands
    by_dim = dict(zip(op.attributes["dims"], indices, strict=True))
    at = tuple(by_dim.get(i, slice(None)) for i in range(x.ndim))
    result = x.copy()
    if op.attributes["accumulate"].value:
        np.add.at(result, at, updates)
    else:
        result[at] = updates
    return result


def _unpack(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    dim, at, size = (op.attributes[name].value for name in ("dim", "at", "size"))
    panels = np.moveaxis(operands[0], at, -2)
    joined = panels.reshape(*panels.shape[:-2], -1)
    return np.moveaxis(joined[..., :size], -1, dim)


FUNCTIONS = {
    "reshape": _reshape,
    "broadcast": _broadcast,
    "transpose": _transpose,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "take": _take,
    "gather": _gather,
    "scatter": _scatter,
    "index_put": _index_put,
    "unpack": _unpack,
}

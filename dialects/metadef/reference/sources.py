"""Reference of the ops that make tensors from attributes, and of quantisation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from metadef import ir
from metadef.dialects.metadef.literals import array_of
from metadef.dialects.metadef.types import dims_of
from metadef.symbolic import Dim

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


def result_shape(op: Any, symbols: Symbols) -> tuple[int, ...]:
    """Return the run-time shape of an op's (first) result."""
    return tuple(d.evaluate(symbols) for d in dims_of(op.results[0].type))


def _constant(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return array_of(op.attributes["value"])


def _fill(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return np.full(result_shape(op, symbols), op.attributes["value"].value)


def _iota(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    shape, dim = result_shape(op, symbols), op.attributes["dim"].value
    start, step = op.attributes["start"].value, op.attributes["step"].value
    index = np.arange(shape[dim]).reshape([-1 if i == dim else 1 for i in range(len(shape))])
    return np.broadcast_to(start + step * index, shape)


def _dim(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    return np.array(Dim.of(op.attributes["expr"].value).evaluate(symbols))


def _parameters(element: Any, rank: int) -> tuple[Array, Array, int, int]:
    """Return scale and zero point, broadcastable to the tensor, and the storage range."""
    low, high = element.storage_type_min, element.storage_type_max
    if isinstance(element, ir.quant.UniformQuantizedPerAxisType):
        shape = [-1 if i == element.quantized_dimension else 1 for i in range(rank)]
        scale = np.array(element.scales).reshape(shape)
        return scale, np.array(element.zero_points).reshape(shape), low, high
    return np.array(element.scale), np.array(element.zero_point), low, high


def _quantize(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    element = ir.RankedTensorType(op.results[0].type).element_type
    scale, zero, low, high = _parameters(element, operands[0].ndim)
    return np.clip(np.rint(operands[0] / scale) + zero, low, high)


def _dequantize(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    element = ir.RankedTensorType(op.operands[0].type).element_type
    scale, zero, _, _ = _parameters(element, operands[0].ndim)
    return (operands[0].astype(np.int64) - zero) * scale


FUNCTIONS = {
    "constant": _constant,
    "fill": _fill,
    "iota": _iota,
    "dim": _dim,
    "quantize": _quantize,
    "dequantize": _dequantize,
}

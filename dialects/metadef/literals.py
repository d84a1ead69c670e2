"""Numpy arrays to dense elements attributes and back, for every element type of the dialect."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from metadef import ir
from metadef.diagnostics import MetadefError

Array = np.ndarray[Any, Any]

_DTYPES = {
    "f16": np.float16,
    "bf16": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
}


def numpy_dtype(element: ir.Type) -> np.dtype[Any]:
    """Return the numpy dtype that holds an element type; bf16 is held in float32."""
    name = str(element)
    if name not in _DTYPES:
        raise MetadefError(f"element type {name} has no numpy form; expected {', '.join(_DTYPES)}")
    return np.dtype(_DTYPES[name])


def element_type(dtype: np.dtype[Any]) -> ir.Type:
    """Return the element type of a numpy dtype."""
    for name, known in _DTYPES.items():
        if name != "bf16" and dtype == known:
            return ir.Type.parse(name)
    raise MetadefError(f"numpy dtype {dtype} has no element type")


def dense_elements(value: Array | int | float | bool, element: ir.Type | None) -> ir.Attribute:
    """Return the literal for an array or scalar; an array of equal elements becomes a splat."""
    if element is None and isinstance(value, float):
        element = ir.F32Type.get()
    array = np.asarray(value)
    if element is None:
        element = element_type(array.dtype)
    array = np.ascontiguousarray(array.astype(numpy_dtype(element)))
    type_ = ir.RankedTensorType.get(np.shape(value), element, loc=ir.Location.unknown())
    flat = array.reshape(-1)
    # Bits are compared, not values: a splat must not turn -0.0 into 0.0, and NaN equals itself.
    if flat.size and (flat.size == 1 or not np.any(_bits(flat) != _bits(flat[:1]))):
        return ir.DenseElementsAttr.get_splat(type_, _scalar(flat[0], element))
    if str(element) == "bf16":
        bits = bfloat16_bits(flat)
        return ir.DenseElementsAttr.get(bits, type=element, shape=list(np.shape(value)))
    return ir.DenseElementsAttr.get(flat, type=element, shape=list(np.shape(value)))


def array_of(literal: Any) -> Array:
    """Return a dense elements attribute as an array (bf16 as float32)."""
    shape = tuple(ir.ShapedType(literal.type).shape)
    element = ir.ShapedType(literal.type).element_type
    dtype = numpy_dtype(element)
    if literal.is_splat:
        return np.full(shape, literal.get_splat_value().value, dtype)
    if str(element) == "bf16":
        return _read_bfloat16(str(literal)).reshape(shape)
    return np.array(literal, dtype).reshape(shape)


def bfloat16_bits(array: Array) -> Array:
    """Return float32 values rounded to nearest even as bf16 bit patterns (uint16)."""
    bits = array.astype(np.float32).view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)
    kept = np.where(np.isnan(array), (bits >> 16) | np.uint32(0x40), rounded >> 16)
    return kept.astype(np.uint16)


def round_to_bfloat16(array: Array) -> Array:
    """Return the array rounded to bf16, as float32."""
    wide = bfloat16_bits(np.asarray(array, np.float32)).astype(np.uint32) << 16
    return wide.view(np.float32)


def _read_bfloat16(text: str) -> Array:
    """Return a literal's values from its text: the bindings have no buffer for bf16."""
    body = text[len("dense<") : text.rindex("> : ")]
    if body.startswith('"0x'):
        wide = np.frombuffer(bytes.fromhex(body.strip('"')[2:]), np.uint16).astype(np.uint32) << 16
        return wide.view(np.float32)
    bits = [
        int(token, 16) << 16 if token.startswith("0x") else int(np.float32(token).view(np.uint32))
        for token in re.findall(r"[^\s,\[\]]+", body)
    ]
    return np.array(bits, np.uint32).view(np.float32)


def _bits(array: Array) -> Array:
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def _scalar(value: Any, element: ir.Type) -> ir.Attribute:
    if isinstance(element, ir.IntegerType):
        return ir.IntegerAttr.get(element, int(value))
    return ir.FloatAttr.get(element, float(value), loc=ir.Location.unknown())

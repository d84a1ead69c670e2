"""Torch's element types and promotion rules on MLIR types.

Metadef's element types are f16 bf16 f32 f64, i1 (bool), signless i8..i64 (signed) and ui8.
"""

from __future__ import annotations

from metadef import ir
from metadef.diagnostics import UnsupportedOpError

#: torch's ScalarType numbers, as they stand in `torch.constant.int` dtype arguments
_SCALAR_TYPES = {
    0: "ui8",
    1: "i8",
    2: "i16",
    3: "i32",
    4: "i64",
    5: "f16",
    6: "f32",
    7: "f64",
    11: "i1",
    15: "bf16",
}

_FROM_TORCH = {
    "si8": "i8",
    "si16": "i16",
    "si32": "i32",
    "si64": "i64",
} | {name: name for name in _SCALAR_TYPES.values()}


def element_from_dtype(dtype: int) -> ir.Type:
    """Return the element type of torch's ScalarType number `dtype`."""
    if dtype not in _SCALAR_TYPES:
        raise UnsupportedOpError(f"torch scalar type {dtype} has no metadef element type")
    return ir.Type.parse(_SCALAR_TYPES[dtype])


def element_from_torch(text: str) -> ir.Type:
    """Return the element type for the dtype of a `!torch.vtensor`, such as `si64`."""
    if text not in _FROM_TORCH:
        raise UnsupportedOpError(f"tensors of {text} have no metadef element type")
    return ir.Type.parse(_FROM_TORCH[text])


def torch_dtype_text(element: ir.Type) -> str:
    """Return how `!torch.vtensor` spells an element type: `si64` for i64."""
    text = str(element)
    return "s" + text if text in ("i8", "i16", "i32", "i64") else text


def bool_type() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def i32() -> ir.Type:
    return ir.IntegerType.get_signless(32)


def i64() -> ir.Type:
    return ir.IntegerType.get_signless(64)


def f32() -> ir.Type:
    return ir.F32Type.get()


def f64() -> ir.Type:
    return ir.F64Type.get()


def is_float(element: ir.Type) -> bool:
    return isinstance(element, ir.FloatType)


def is_bool(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and element.width == 1


def is_integer(element: ir.Type) -> bool:
    """Answer whether the type is an integer other than bool."""
    return isinstance(element, ir.IntegerType) and element.width > 1


def is_half(element: ir.Type) -> bool:
    """Answer whether the type is a 16-bit float, for which torch computes in f32."""
    return isinstance(element, ir.F16Type | ir.BF16Type)


def width(element: ir.Type) -> int:
    """Return the bits of an element."""
    assert isinstance(element, ir.IntegerType | ir.FloatType)
    return int(element.width)


def opmath(element: ir.Type) -> ir.Type:
    """Return the type torch computes in: f32 for 16-bit floats, else `element`."""
    return f32() if is_half(element) else element


def category(element: ir.Type) -> int:
    """Return torch's promotion category: bool 0, integer 1, float 2."""
    return 2 if is_float(element) else 0 if is_bool(element) else 1


def promote_elements(a: ir.Type, b: ir.Type) -> ir.Type:
    """Return `torch.promote_types(a, b)`."""
    if a == b:
        return a
    if category(a) != category(b):
        return a if category(a) > category(b) else b
    if is_float(a):
        if width(a) == width(b):  # f16 with bf16
            return f32()
        return a if width(a) > width(b) else b
    signed = [t for t in (a, b) if not ir.IntegerType(t).is_unsigned]
    if len(signed) == 1:  # ui8 with a signed type: the narrowest signed type that holds both
        return ir.IntegerType.get_signless(max(16, width(signed[0])))
    return a if width(a) > width(b) else b


def float_range(element: ir.Type) -> tuple[float, float]:
    """Return the least and greatest value an element holds; infinities for floats."""
    if is_float(element):
        return float("-inf"), float("inf")
    low, high = integer_range(element)
    return float(low), float(high)


def integer_range(element: ir.Type) -> tuple[int, int]:
    """Return the least and greatest value of an integer or bool type."""
    bits = width(element)
    if bits == 1:
        return 0, 1
    if ir.IntegerType(element).is_unsigned:
        return 0, 2**bits - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def epsilon(element: ir.Type) -> float:
    """Return `torch.finfo(element).eps`."""
    return {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-23, "f64": 2.0**-52}[str(element)]

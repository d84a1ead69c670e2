"""Attributes to Python values and back: `integer(op, "dim")`, `attribute_of([1, 2])`.

Readers raise a `MetadefError` that names the attribute, so that a verifier can call them on
whatever a user wrote.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.diagnostics import MetadefError, near_names


def integer(op: Any, name: str) -> int:
    """Return an integer attribute."""
    return int(_read(op, name, ir.IntegerAttr, "an integer").value)


def boolean(op: Any, name: str) -> bool:
    """Return a bool attribute."""
    return bool(_read(op, name, ir.BoolAttr, "a bool").value)


def real(op: Any, name: str) -> float:
    """Return a float attribute."""
    return float(_read(op, name, ir.FloatAttr, "a float").value)


def scalar(op: Any, name: str) -> int | float | bool:
    """Return an integer, float or bool attribute."""
    attribute = _read(op, name, (ir.BoolAttr, ir.IntegerAttr, ir.FloatAttr), "a number")
    value: int | float | bool = attribute.value
    return value


def text(op: Any, name: str) -> str:
    """Return a string attribute."""
    return str(_read(op, name, ir.StringAttr, "a string").value)


def choice(op: Any, name: str, choices: Sequence[str]) -> str:
    """Return a string attribute that is one of `choices`."""
    value = text(op, name)
    if value not in choices:
        raise MetadefError(
            f"attribute '{name}' must be one of {', '.join(choices)}, got '{value}'"
            + near_names(value, choices)
        )
    return value


def integers(op: Any, name: str) -> list[int]:
    """Return an `array<i64: ...>` attribute."""
    return list(_read(op, name, ir.DenseI64ArrayAttr, "array<i64: ...>"))


def reals(op: Any, name: str) -> list[float]:
    """Return an `array<f64: ...>` attribute."""
    return list(_read(op, name, ir.DenseF64ArrayAttr, "array<f64: ...>"))


def symbol(op: Any, name: str) -> str:
    """Return the name in a symbol reference."""
    return str(_read(op, name, ir.FlatSymbolRefAttr, "a symbol reference").value)


def attribute_of(value: Any) -> ir.Attribute:
    """Return the attribute for a Python value: ints are i64, floats f64, lists dense arrays."""
    if isinstance(value, ir.Attribute):
        return value
    if isinstance(value, bool):
        return ir.BoolAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if isinstance(value, float):
        return ir.FloatAttr.get_f64(value)
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    assert isinstance(value, list | tuple), f"no attribute for {value!r}"
    if value and all(isinstance(v, float) for v in value):
        return ir.DenseF64ArrayAttr.get(list(value))
    return ir.DenseI64ArrayAttr.get(list(value))


def scalar_attribute(value: int | float | bool, element: ir.Type) -> ir.Attribute:
    """Return a number as an attribute of the element type: an i1 is a bool, floats are floats."""
    if isinstance(element, ir.IntegerType):
        if element.width == 1:
            return ir.BoolAttr.get(bool(value))
        return ir.IntegerAttr.get(element, int(value))
    return ir.FloatAttr.get(element, float(value), loc=ir.Location.unknown())


def _read(op: Any, name: str, kind: Any, expected: str) -> Any:
    attributes = op.attributes
    if name not in attributes:
        raise MetadefError(f"attribute '{name}' is missing, expected {expected}")
    attribute = attributes[name]
    if not isinstance(attribute, kind):
        raise MetadefError(f"attribute '{name}' must be {expected}, got {attribute}")
    return attribute

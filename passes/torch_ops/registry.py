"""The table of conversions: a torch op's name to the function that builds metadef ops for it.

    @converts("aten.softmax.int", "aten._softmax")
    def softmax(call: Call, x: ir.Value, dim: int, dtype: int | None) -> ir.Value: ...

A conversion takes the call and the op's operands as Python values, in the order of the op's
schema, and returns the value of each result (a tuple for several). It raises `NotModelled` before
it builds anything when it cannot say the op in this form; the op then becomes `metadef.opaque`.
"""

from __future__ import annotations

import importlib
import importlib.resources
from collections.abc import Callable
from functools import cache
from typing import Any

Conversion = Callable[..., Any]


class NotModelled(Exception):
    """The op has a conversion, but not for these operands; torch-mlir's lowering takes it."""


_TABLE: dict[str, Conversion] = {}


def converts(*names: str) -> Callable[[Conversion], Conversion]:
    """Declare the decorated function the conversion of the torch ops `names` (without `torch.`)."""

    def wrap(function: Conversion) -> Conversion:
        for name in names:
            assert name not in _TABLE, f"{name} has two conversions"
            _TABLE[name] = function
        return function

    return wrap


@cache
def conversions() -> dict[str, Conversion]:
    """Return every conversion by its op's full name; imports the family modules on first use."""
    folder = importlib.resources.files("metadef.passes.torch_ops")
    for entry in sorted(folder.iterdir(), key=lambda f: f.name):
        if entry.name.endswith(".py") and not entry.name.startswith("_"):
            importlib.import_module(f"metadef.passes.torch_ops.{entry.name[:-3]}")
    return {f"torch.{name}": function for name, function in _TABLE.items()}


def is_modelled(name: str) -> bool:
    """Answer whether the torch op called `name`, such as `torch.aten.relu`, has a conversion."""
    return name in conversions()

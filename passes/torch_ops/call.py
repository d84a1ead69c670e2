"""What a conversion is given: the torch op, its results as torch typed them, and the symbols."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from metadef import ir
from metadef.diagnostics import ShapeInferenceError
from metadef.symbolic import Dim

from .dtypes import element_from_torch
from .ranges import Ranges

_VTENSOR = re.compile(r"!torch\.vtensor<\[([^\]]*)\],(.+)>$")


@dataclass(frozen=True)
class ScalarTensor:
    """A Python scalar that only the running model knows, as a rank-0 tensor of f64, i64 or i1."""

    value: ir.Value


#: a Python scalar; a `Dim` is an int that depends on symbols
Number: TypeAlias = int | float | Dim | ScalarTensor
#: a tensor operand; a number stands where eager got a Python scalar (it promotes as one)
Tensor: TypeAlias = ir.Value | int | float | Dim | ScalarTensor


@dataclass(frozen=True)
class TensorType:
    """The dtype and dims torch gave a tensor; `dims` is None where they are for us to infer."""

    element: ir.Type
    dims: tuple[Dim, ...] | None
    rank: int


@dataclass(frozen=True)
class Call:
    """One torch op under conversion."""

    op: ir.Operation
    name: str
    results: tuple[TensorType | None, ...]
    ranges: Ranges

    @property
    def element(self) -> ir.Type:
        """The element type of the first result."""
        first = self.results[0]
        assert first is not None, f"{self.name} does not give a tensor"
        return first.element

    @property
    def dims(self) -> tuple[Dim, ...] | None:
        """The dims of the first result, where torch said them."""
        first = self.results[0]
        return first.dims if first is not None else None

    def used(self, result: int) -> bool:
        """Answer whether result number `result` has a user."""
        return next(iter(self.op.results[result].uses), None) is not None

    def fail(self, what: str) -> NoReturn:
        """Raise a ShapeInferenceError that names the op and its source line."""
        raise ShapeInferenceError(f"'{self.name}' op: {what}; from {source_line(self.op.location)}")


def parse_vtensor(text: str) -> tuple[ir.Type, tuple[int | None, ...]] | None:
    """Return element type and dims (None for `?`) of a `!torch.vtensor` type, or None."""
    match = _VTENSOR.match(text)
    if match is None:
        return None
    dims = [d for d in match[1].split(",") if d]
    return element_from_torch(match[2]), tuple(None if d == "?" else int(d) for d in dims)


def source_line(location: ir.Location) -> str:
    """Return `file:line` of a location, or its text."""
    match = re.search(r'"([^"]+)":(\d+)', str(location))
    return f"{match[1]}:{match[2]}" if match else str(location)

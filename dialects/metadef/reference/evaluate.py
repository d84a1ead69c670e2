"""The reference semantics of one op: numpy arrays in, numpy arrays out.

Floats of every width are computed in double precision and returned so (`cast` alone rounds, to the
type it names); integers have their own width and wrap; bools are bools. It is slow and plain on
purpose: tests and `metadef diff` compare everything else with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from metadef import ir
from metadef.diagnostics import MetadefError, location_text
from metadef.dialects.metadef.literals import numpy_dtype

from . import linear, movement, pointwise, reduction, sources, window

Array = np.ndarray[Any, Any]
Function = Callable[[Any, list[Array], Mapping[str, int]], "Array | tuple[Array, ...]"]

_FUNCTIONS: dict[str, Function] = {
    f"metadef.{name}": function
    for family in (linear, movement, pointwise, reduction, sources, window)
    for name, function in family.FUNCTIONS.items()
}


def evaluate(
    op: Any, operands: Sequence[Array], symbols: Mapping[str, int] | None = None
) -> list[Array]:
    """Return the results of a metadef op on `operands`.

    `symbols` gives the symbols that the result's dims and the op's expressions are made of.

    Raises:
        MetadefError: the op has no reference semantics (weight, region ops, torch ops).
    """
    function = _FUNCTIONS.get(op.operation.name)
    if function is None:
        raise MetadefError(
            f"'{op.operation.name}' op: has no reference semantics; from "
            f"{location_text(op.location)}"
        )
    wide = [widen(x, v.type) for x, v in zip(operands, op.operands, strict=True)]
    with np.errstate(all="ignore"):
        results = function(op, wide, symbols or {})
    if not isinstance(results, tuple):
        results = (results,)
    return [widen(r, v.type) for r, v in zip(results, op.results, strict=True)]


def widen(array: Array, type_: ir.Type) -> Array:
    """Return an array in the dtype that the reference computes with for a tensor type."""
    element = ir.RankedTensorType(type_).element_type
    return np.asarray(array).astype(reference_dtype(element), copy=False)


def reference_dtype(element: ir.Type) -> np.dtype[Any]:
    """Return float64 for floats, else the element type's own dtype."""
    if isinstance(element, ir.FloatType):
        return np.dtype(np.float64)
    if isinstance(element, ir.quant.QuantizedType):
        sign = "i" if element.is_signed else "u"
        return np.dtype(f"{sign}{element.storage_type_integral_width // 8}")
    return numpy_dtype(element)

"""Compute at compile time what constants decide, and apply algebraic identities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.dialects.metadef.attributes import text
from metadef.dialects.metadef.interpret import round_to_type
from metadef.dialects.metadef.ops.constant import LIMIT, constant
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.reference.evaluate import evaluate, widen
from metadef.dialects.metadef.shapes import shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.rewrite import Pattern, apply_patterns
from metadef.symbolic import Dim, product

from ._buffers import byte_size, owner_of
from ._identities import IDENTITIES

_SOURCES = frozenset({"metadef.constant", "metadef.fill", "metadef.iota", "metadef.dim"})
_FOLDED = (
    "pointwise",
    "reduce",
    "reshape",
    "broadcast",
    "transpose",
    "slice",
    "concat",
    "pad",
    "take",
    "gather",
    "scan",
    "dim",
)
#: elements; a larger operand is not worth the compile time
_LARGEST_OPERAND = 1 << 16


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Replace ops on constants by their values, up to 4 KiB, and drop ops that change nothing.

    Before:
        %0 = "metadef.dim"() <{expr = "12"}>
        %1 = "metadef.pointwise"(%0) <{fn = "cast"}> : tensor<i64> -> tensor<f32>
        %2 = "metadef.pointwise"(%x, %1) <{fn = "mul"}>
        %3 = "metadef.transpose"(%2) <{perm = array<i64: 1, 0>}>
        %4 = "metadef.transpose"(%3) <{perm = array<i64: 1, 0>}>
    After:
        %0 = "metadef.fill"() <{value = 1.200000e+01 : f32}> : tensor<f32>
        %1 = "metadef.pointwise"(%x, %0) <{fn = "mul"}>

    Values come from the ops' reference semantics, rounded to the result's type op by op. What
    depends on a weight is left: such kernels move to @init when they are outlined.
    """

    accepts = FRONT
    requires = "metadef ops on tensors"
    leaves = "no op of constants alone with a small static result; no op that is an identity"

    def run(self, module: ir.Operation) -> None:
        folds = [Pattern("evaluate", f"metadef.{name}", evaluate_constant) for name in _FOLDED]
        apply_patterns(module, [*folds, *IDENTITIES])


def evaluate_constant(op: Any) -> ir.Value | None:
    """Return the value of an op of constants: a fill if all its elements are equal."""
    result = op.operation.results[0]
    if not ir.ShapedType(result.type).has_static_shape or len(op.operation.results) != 1:
        return None
    if op.operation.name == "metadef.dim" and not Dim.of(text(op, "expr")).is_static:
        return None
    if byte_size(result.type).value > LIMIT or not all(_is_known(v) for v in op.operation.operands):
        return None
    try:
        operands = [_value_of(v) for v in op.operation.operands]
        value = round_to_type(evaluate(op, operands, {})[0], result.type)
    except MetadefError:
        # No reference semantics for this op on these types: it is computed at run time.
        return None
    shape = shape_of(result)
    # Bits are compared, not values: 0.0 and -0.0 differ, and NaN equals itself.
    bits = np.ascontiguousarray(value).reshape(-1, 1).view(np.uint8)
    if value.size and not np.any(bits != bits[:1]):
        return fill(shape.dims, value.reshape(-1)[0].item(), shape.element)
    return constant(value, shape.element)


def _value_of(value: ir.Value) -> np.ndarray[Any, Any]:
    """Return the value of a constant, as the reference computes with it."""
    owner = owner_of(value)
    assert owner is not None, "a constant has an op"
    return widen(round_to_type(evaluate(owner.opview, [], {})[0], value.type), value.type)


def _is_known(value: ir.Value) -> bool:
    owner = owner_of(value)
    if owner is None or owner.name not in _SOURCES:
        return False
    if owner.name == "metadef.dim":
        return Dim.of(text(owner, "expr")).is_static
    count = product(shape_of(value).dims)
    return count.is_static and count.value <= _LARGEST_OPERAND

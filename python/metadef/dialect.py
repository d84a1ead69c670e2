"""How ops are defined here: MLIR's Python-defined dialects plus labelled constraints.

    C1 = constraint("softmax-C1", "dim is an axis of x")

    def infer(x: Shaped, dim: int) -> Shaped:
        C1.check(0 <= dim < x.rank, f"dim {dim} of rank {x.rank}")
        return x

    class SoftmaxOp(MetadefOp, name="softmax", traits=[ir.ext.Pure]):
        x: Operand
        result: Result
        dim: ir.IntegerAttr
        constraints = (C1,)

The shape function checks the constraints, so that verifier, builder and shape inference agree:
each runs the same function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from metadef import ir
from metadef.diagnostics import ShapeInferenceError

Operand: TypeAlias = ir.ext.Operand[Any]
Result: TypeAlias = ir.ext.Result[Any]


@dataclass(frozen=True)
class Constraint:
    """One labelled rule of an op, shared by shape function, verifier, docs and negative test."""

    label: str
    rule: str

    def check(self, holds: bool, got: str) -> None:
        """Raise when the rule does not hold; `got` says what came instead.

        Raises:
            ShapeInferenceError: `label: rule, got ...`.
        """
        if not holds:
            raise self.broken(got)

    def broken(self, got: str) -> ShapeInferenceError:
        """Return the error that reports the rule as broken."""
        return ShapeInferenceError(f"{self.label}: {self.rule}, got {got}")


def constraint(label: str, rule: str) -> Constraint:
    """Return the constraint `label: rule`; the label is `op-C1`, `op-C2`, ..."""
    return Constraint(label, rule)

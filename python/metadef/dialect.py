"""How ops are defined here: MLIR's Python-defined dialects plus labelled constraints.

    class SoftmaxOp(MetadefDialect.Operation, ConstrainedOp, name="softmax", traits=[ir.ext.Pure]):
        x: Operand
        result: Result
        dim: ir.IntegerAttr
        constraints = (constraint("softmax-C1", "dim is an axis of x", lambda op: ...),)

A constraint's check returns None when it holds, or the text of what came instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from metadef import ir

Operand = ir.ext.Operand[Any]
Result = ir.ext.Result[Any]


@dataclass(frozen=True)
class Constraint:
    """One labelled rule of an op, shared by verifier, generated docs and the negative test."""

    label: str
    rule: str
    check: Callable[[Any], str | None]


def constraint(label: str, rule: str, check: Callable[[Any], str | None]) -> Constraint:
    return Constraint(label, rule, check)


class ConstrainedOp:
    """Mix-in that verifies `constraints` in order and reports the first that fails."""

    constraints: ClassVar[tuple[Constraint, ...]] = ()

    def verify_invariants(self) -> bool:
        for rule in self.constraints:
            got = rule.check(self)
            if got is not None:
                op: Any = self
                op.location.emit_error(
                    f"'{op.operation.name}' op: {rule.label}: {rule.rule}, got {got}"
                )
                return False
        return True

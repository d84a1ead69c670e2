"""Loops and branches of `scf` around Python functions that build their bodies."""

from __future__ import annotations

from collections.abc import Callable

from metadef import ir

from .index_math import Index, value


def loop(
    start: Index,
    stop: Index,
    step: int,
    carried: list[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Build an `scf.for` whose body maps the carried values to their next; return the last."""
    op = ir.scf.ForOp(value(start), value(stop), value(step), carried)
    with ir.InsertionPoint(op.body):
        ir.scf.YieldOp(body(op.induction_variable, list(op.inner_iter_args)))
    return list(op.results)


def branch(
    condition: ir.Value, otherwise: list[ir.Value], then: Callable[[], list[ir.Value]]
) -> list[ir.Value]:
    """Build an `scf.if` that yields `then()` or the values as they are."""
    return choose(condition, [v.type for v in otherwise], then, lambda: otherwise)


def choose(
    condition: ir.Value,
    types: list[ir.Type],
    then: Callable[[], list[ir.Value]],
    otherwise: Callable[[], list[ir.Value]],
) -> list[ir.Value]:
    """Build an `scf.if` that yields `then()` or `otherwise()`, values of `types`."""
    op = ir.scf.IfOp(condition, types, has_else=True)
    with ir.InsertionPoint(op.then_block):
        ir.scf.YieldOp(then())
    with ir.InsertionPoint(op.else_block):
        ir.scf.YieldOp(otherwise())
    return list(op.results)

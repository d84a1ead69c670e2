"""Rewrite patterns: the work list follows users and replacements, and survives erased ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from metadef import ir
from metadef.rewrite import apply_patterns, pattern


@pytest.fixture
def context() -> Iterator[ir.Context]:
    with ir.make_context() as context, ir.Location.unknown():
        yield context


def chain(length: int) -> ir.Module:
    """Return a function of `length` additions, each of the one before with the argument."""
    lines = [f"  %{i + 1} = arith.addf %{i}, %{i} : f32" for i in range(length)]
    body = "\n".join(lines).replace("%0", "%x")
    return ir.Module.parse(f"func.func @f(%x: f32) -> f32 {{\n{body}\n  return %{length} : f32\n}}")


def names(module: ir.Module) -> list[str]:
    return [op.operation.name for op in ir.operations(module)]


def test_rewrites_every_op_once_though_addresses_are_reused(context: ir.Context) -> None:
    module = chain(500)

    @pattern("arith.addf")
    def double_is_a_product(op: Any) -> ir.Value:
        x = op.operation.operands[0]
        return ir.arith.mulf(x, x)

    assert apply_patterns(module.operation, [double_is_a_product]) == 500
    assert names(module).count("arith.mulf") == 500
    assert module.operation.verify()


def test_visits_the_replacement_again(context: ir.Context) -> None:
    module = chain(1)

    @pattern("arith.addf")
    def to_product(op: Any) -> ir.Value:
        return ir.arith.mulf(*op.operation.operands)

    @pattern("arith.mulf")
    def to_difference(op: Any) -> ir.Value:
        return ir.arith.subf(*op.operation.operands)

    assert apply_patterns(module.operation, [to_product, to_difference]) == 2
    assert "arith.subf" in names(module)


def test_none_leaves_the_op(context: ir.Context) -> None:
    module = chain(3)
    before = str(module)

    @pattern("arith.addf")
    def never(op: Any) -> None:
        return None

    assert apply_patterns(module.operation, [never]) == 0
    assert str(module) == before

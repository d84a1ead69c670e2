"""Index arithmetic that folds: an index is a Python int or an `index` value."""

from __future__ import annotations

from typing import TypeAlias

from metadef import ir

Index: TypeAlias = int | ir.Value


def value(i: Index) -> ir.Value:
    """Return `i` as an SSA value of type index."""
    if not isinstance(i, int):
        return i
    index = ir.IndexType.get()
    attributes = {"value": ir.IntegerAttr.get(index, i)}
    # The typed builder takes four times as long, and there are many constants.
    return ir.Operation.create("arith.constant", results=[index], attributes=attributes).result


def add(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if isinstance(a, int) and a == 0:
        return b
    if isinstance(b, int) and b == 0:
        return a
    return ir.arith.addi(value(a), value(b))


def sub(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    if isinstance(b, int) and b == 0:
        return a
    if equal(a, b):
        return 0
    if isinstance(a, ir.Value) and isinstance(b, ir.Value) and _made_by(a, "arith.addi"):
        base, more = a.owner.operation.operands
        if base == b:
            constant = _constant(more)
            return more if constant is None else constant
    return ir.arith.subi(value(a), value(b))


def mul(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if isinstance(a, int):
        a, b = b, a
    if isinstance(b, int):
        if b == 0:
            return 0
        if b == 1:
            return a
    return ir.arith.muli(value(a), value(b))


def scaled(i: Index, by: Index) -> Index:
    """Multiply an index; of a sum with a constant, both, so that an address ends in a constant."""
    if isinstance(i, ir.Value) and isinstance(by, int) and _made_by(i, "arith.addi"):
        base, more = i.owner.operation.operands
        constant = _constant(more)
        if constant is not None:
            return add(mul(base, by), constant * by)
    return mul(i, by)


def _made_by(i: ir.Value, name: str) -> bool:
    return not isinstance(i.owner, ir.Block) and i.owner.operation.name == name


def _constant(i: ir.Value) -> int | None:
    if not _made_by(i, "arith.constant"):
        return None
    return int(ir.IntegerAttr(i.owner.operation.attributes["value"]).value)


def floordiv(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int) and b == 1:
        return a
    return ir.arith.floordivsi(value(a), value(b))


def div(a: Index, b: Index) -> Index:
    """Divide non-negative indices."""
    if isinstance(a, int) and isinstance(b, int):
        return a // b
    if isinstance(b, int) and b == 1:
        return a
    return ir.arith.divui(value(a), value(b))


def rem(a: Index, b: Index) -> Index:
    """Return the remainder of non-negative indices."""
    if isinstance(a, int) and isinstance(b, int):
        return a % b
    if isinstance(b, int) and b == 1:
        return 0
    return ir.arith.remui(value(a), value(b))


def rounded_down(a: Index, b: int) -> Index:
    """Return the greatest multiple of `b` that is at most `a`: `a` itself if it surely is one."""
    if isinstance(a, ir.Value) and _made_by(a, "arith.muli"):
        factor = _constant(a.owner.operation.operands[1])
        if factor is not None and factor % b == 0:
            return a
    return mul(div(a, b), b)


def mod(a: Index, b: Index) -> Index:
    """Return the remainder with the sign of `b` (affine mod)."""
    return sub(a, mul(floordiv(a, b), b)) if not isinstance(a, int) else rem(a, b)


def ceildiv(a: Index, b: Index) -> Index:
    """Divide non-negative indices, rounded up."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return div(add(a, sub(b, 1)), b)


def minimum(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    return ir.arith.minsi(value(a), value(b))


def maximum(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return ir.arith.maxsi(value(a), value(b))


def equal(a: Index, b: Index) -> bool:
    """Tell whether two indices are surely equal."""
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return bool(a == b)

"""Index arithmetic that folds: an index is a Python int or an `index` value."""

from __future__ import annotations

from typing import TypeAlias

from metadef import ir

Index: TypeAlias = int | ir.Value


def value(i: Index) -> ir.Value:
    """Return `i` as an SSA value of type index."""
    return ir.arith.constant(ir.IndexType.get(), i) if isinstance(i, int) else i


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

"""sin, cos and tan: r = x - n pi, then one polynomial for the sine on [-pi/2, pi/2]."""

from __future__ import annotations

import math
from collections.abc import Callable

from metadef import ir
from metadef.passes.vector_math.coefficients import SIN32, SIN64
from metadef.passes.vector_math.huge_angle import reduce_huge
from metadef.passes.vector_math.lanes import (
    Elementwise,
    Lanes,
    absolute,
    fma,
    polynomial,
    round_to_integer,
)

ONE_BY_PI = 0.3183098861837907
#: pi in three positive parts by format, for x - n pi in three fma steps (Cody and Waite, 1980);
#: positive, so that -0 stays -0
PI_PARTS = {
    32: (3.141592502593994, 1.5099578831723193e-07, 1.078060505991553e-14),
    64: (3.141592653589793, 1.224646799147353e-16, 2.1657133478438278e-32),
}
#: beyond, the product n pi is no longer exact enough
LIMIT = {32: 2.0**17, 64: 2.0**30}


@Elementwise
def sin(x: Lanes) -> Lanes:
    """Sine of any finite angle. f32 and f64: 3 ulp."""
    return _sine(x, half_turn=False)


@Elementwise
def cos(x: Lanes) -> Lanes:
    """Cosine of any finite angle. f32 and f64: 3 ulp."""
    return _sine(x, half_turn=True)


@Elementwise
def tan(x: Lanes) -> Lanes:
    """Tangent of any finite angle. f32 and f64: 4 ulp."""
    return sin.lanes(x) / cos.lanes(x)


def _sine(x: Lanes, half_turn: bool) -> Lanes:
    """Return sin(x), or cos(x) = sin(x + pi/2) with `half_turn`."""
    r, parity = _reduce(x, half_turn)
    huge = absolute(x) > LIMIT[x.width]
    r, parity = _where_any(huge, lambda: reduce_huge(x, half_turn), (r, parity))
    t = r * r
    y = r * fma(t, polynomial(SIN32 if x.width == 32 else SIN64, t), 1.0)
    return (y.bits() ^ (parity << (x.width - 1))).as_float()


def _reduce(x: Lanes, half_turn: bool) -> tuple[Lanes, Lanes]:
    """Return r in [-pi/2, pi/2] and an integer whose low bit says to negate sin(r)."""
    if half_turn:
        n, parity = round_to_integer(fma(x, ONE_BY_PI, -0.5), 1.0)
        n, parity = n + 0.5, parity + 1
    else:
        n, parity = round_to_integer(x, ONE_BY_PI)
    for part in PI_PARTS[x.width]:
        x = fma(n, -part, x)
    return x, parity


def _where_any(
    lanes: Lanes, slow: Callable[[], tuple[Lanes, ...]], fast: tuple[Lanes, ...]
) -> tuple[Lanes, ...]:
    """Compute `slow` only when some lane asks for it, and take it in those lanes."""
    some, kind = lanes.value, lanes.kind
    if kind.shape is not None:
        flat = ir.VectorType.get([math.prod(kind.shape)], kind.element)
        some = some if flat == kind.type else ir.vector.shape_cast(flat, some)
        some = ir.vector.reduction(kind.element, ir.vector.CombiningKind.OR, some)
    branch = ir.scf.IfOp(some, [x.kind.type for x in fast], has_else=True)
    with ir.InsertionPoint(branch.then_block):
        values = [lanes.select(s, f).value for s, f in zip(slow(), fast, strict=True)]
        ir.scf.YieldOp(values)
    with ir.InsertionPoint(branch.else_block):
        ir.scf.YieldOp([x.value for x in fast])
    return tuple(Lanes.of(r) for r in branch.results)

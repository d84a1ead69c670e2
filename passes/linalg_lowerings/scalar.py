"""Scalar code for pointwise fns: metadef element types to `arith` and `math` on compute types.

The semantics (NaN, integers, division by zero, shifts) are torch's on the CPU. Integer division by
zero, where torch raises, gives 0 as quotient: native code must not trap.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadef import ir

Number = int | float | bool


@dataclass(frozen=True)
class Scalars:
    """Makes constants of a type."""

    constant: Callable[[ir.Type, Number], ir.Value]

    def like(self, value: ir.Value, number: Number) -> ir.Value:
        """Return `number` as a constant of `value`'s type."""
        return self.constant(value.type, number)


def attribute(type_: ir.Type, value: Number) -> ir.Attribute:
    """Return a number as an attribute of a signless integer, index or float type."""
    if isinstance(type_, ir.IntegerType):
        wrapped = int(value) & ((1 << type_.width) - 1)
        signed = wrapped - (1 << type_.width) if wrapped >> (type_.width - 1) else wrapped
        return ir.IntegerAttr.get(type_, signed if type_.width > 1 else -wrapped)
    if isinstance(type_, ir.IndexType):
        return ir.IntegerAttr.get(type_, int(value))
    return ir.FloatAttr.get(type_, float(value))


def is_float(type_: ir.Type) -> bool:
    return isinstance(type_, ir.FloatType)


def is_unsigned(element: ir.Type) -> bool:
    """Answer whether a metadef element type compares and widens without a sign."""
    return isinstance(element, ir.IntegerType) and (element.is_unsigned or element.width == 1)


def from_storage(s: Scalars, value: ir.Value, element: ir.Type) -> ir.Value:
    """Return a stored scalar in the compute type of its metadef element."""
    if isinstance(element, (ir.F16Type, ir.BF16Type)):
        return ir.arith.extf(ir.F32Type.get(), value)
    if isinstance(element, ir.IntegerType) and element.width == 1:
        return ir.arith.cmpi(ir.arith.CmpIPredicate.ne, value, s.like(value, 0))
    return value


def to_storage(s: Scalars, value: ir.Value, element: ir.Type) -> ir.Value:
    """Return a scalar in compute type as it is stored."""
    if isinstance(element, (ir.F16Type, ir.BF16Type)):
        return ir.arith.truncf(element, value)
    if isinstance(element, ir.IntegerType) and element.width == 1:
        return ir.arith.extui(ir.IntegerType.get_signless(8), value)
    return value


class Position:
    """Index values of the enclosing generic, or of the given loops."""

    def __init__(self, s: Scalars, loops: Sequence[ir.Value] | None) -> None:
        self.s = s
        self.loops = loops
        self.done: dict[int, ir.Value] = {}

    def dim(self, position: int) -> ir.Value:
        if self.loops is not None:
            return self.loops[position]
        if position not in self.done:
            self.done[position] = _loop_index(position)
        return self.done[position]

    def affine(self, expr: ir.AffineExpr) -> ir.Value:
        """Emit an affine expression of the loop indices."""
        expr = expr.maybe_downcast()
        if isinstance(expr, ir.AffineDimExpr):
            return self.dim(expr.position)
        if isinstance(expr, ir.AffineConstantExpr):
            return self.s.constant(ir.IndexType.get(), expr.value)
        lhs, rhs = self.affine(expr.lhs), self.affine(expr.rhs)
        if isinstance(expr, ir.AffineAddExpr):
            return ir.arith.addi(lhs, rhs)
        if isinstance(expr, ir.AffineMulExpr):
            return ir.arith.muli(lhs, rhs)
        quotient, remainder = floor_division(self.s, lhs, rhs)
        return quotient if isinstance(expr, ir.AffineFloorDivExpr) else remainder


def _loop_index(position: int) -> ir.Value:
    dim = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), position)
    return ir.Operation.create(
        "linalg.index", results=[ir.IndexType.get()], attributes={"dim": dim}
    ).result


def compare(fn: str, a: ir.Value, b: ir.Value, unsigned: bool = False) -> ir.Value:
    """Emit eq, ne, lt, le, gt or ge; a NaN makes all but `ne` false."""
    if is_float(a.type):
        return ir.arith.cmpf(_FLOAT_PREDICATES[fn], a, b)
    table = _UNSIGNED_PREDICATES if unsigned else _SIGNED_PREDICATES
    return ir.arith.cmpi(table[fn], a, b)


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return ir.arith.select(condition, a, b)


def floor_division(s: Scalars, a: ir.Value, b: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Return quotient rounded down and remainder (of b's sign) of signed integers; b is not 0."""
    quotient, remainder = ir.arith.divsi(a, b), ir.arith.remsi(a, b)
    zero = s.like(a, 0)
    inexact = compare("ne", remainder, zero)
    signs = compare("ne", compare("lt", remainder, zero), compare("lt", b, zero))
    adjust = ir.arith.andi(inexact, signs)
    lower = ir.arith.subi(quotient, s.like(a, 1))
    return (
        select(adjust, lower, quotient),
        select(adjust, ir.arith.addi(remainder, b), remainder),
    )


def cast(s: Scalars, value: ir.Value, source: ir.Type, target: ir.Type) -> ir.Value:
    """Convert between metadef element types (or `index`); values are in compute types."""
    if isinstance(target, ir.IntegerType) and target.width == 1:
        return compare("ne", value, s.like(value, 0))
    if is_float(target):
        return _to_float(value, source, target)
    if is_float(value.type):
        return _float_to_int(value, target)
    return _int_to_int(value, source, target)


def _to_float(value: ir.Value, source: ir.Type, target: ir.Type) -> ir.Value:
    if isinstance(value.type, ir.IndexType):
        value = ir.arith.index_cast(ir.IntegerType.get_signless(64), value)
    half = isinstance(target, (ir.F16Type, ir.BF16Type))
    if not is_float(value.type):
        convert = ir.arith.uitofp if is_unsigned(source) else ir.arith.sitofp
        if not half:
            return convert(target, value)
        value = convert(ir.F32Type.get(), value)
    if half:
        return ir.arith.extf(ir.F32Type.get(), ir.arith.truncf(target, value))
    return _resize_float(value, target)


def _resize_float(value: ir.Value, target: ir.Type) -> ir.Value:
    have, want = ir.FloatType(value.type).width, ir.FloatType(target).width
    if have == want:
        return value
    return ir.arith.extf(target, value) if have < want else ir.arith.truncf(target, value)


def _float_to_int(value: ir.Value, target: ir.Type) -> ir.Value:
    if isinstance(target, ir.IndexType):
        wide = ir.arith.fptosi(ir.IntegerType.get_signless(64), value)
        return ir.arith.index_cast(target, wide)
    width = ir.IntegerType(target).width
    # Eager mode wraps what does not fit a narrow type: convert to a wide one first. uint8 goes
    # through int64 (c10/util/TypeCast.h), the others through the machine's 32-bit conversion.
    through = 64 if ir.IntegerType(target).is_unsigned else max(width, 32)
    wide = ir.arith.fptosi(ir.IntegerType.get_signless(through), value)
    signless = ir.IntegerType.get_signless(width)
    return wide if through == width else ir.arith.trunci(signless, wide)


def _int_to_int(value: ir.Value, source: ir.Type, target: ir.Type) -> ir.Value:
    if isinstance(target, ir.IndexType) or isinstance(value.type, ir.IndexType):
        if isinstance(target, ir.IndexType) and isinstance(value.type, ir.IndexType):
            return value
        if isinstance(target, ir.IndexType):
            convert = ir.arith.index_castui if is_unsigned(source) else ir.arith.index_cast
            return convert(target, value)
        return ir.arith.index_cast(ir.IntegerType.get_signless(target.width), value)
    have, want = ir.IntegerType(value.type).width, ir.IntegerType(target).width
    signless = ir.IntegerType.get_signless(want)
    if have == want:
        return value
    if have > want:
        return ir.arith.trunci(signless, value)
    return (ir.arith.extui if is_unsigned(source) else ir.arith.extsi)(signless, value)


def apply(
    s: Scalars, fn: str, args: Sequence[ir.Value], source: ir.Type, target: ir.Type
) -> ir.Value:
    """Emit a pointwise fn from operands of metadef type `source` to a result of type `target`."""
    from . import scalar_float, scalar_int

    if fn == "cast":
        return cast(s, args[0], source, target)
    if fn == "narrow":
        return args[0]
    if fn == "select":
        return select(*args)
    if fn in _SIGNED_PREDICATES:
        return compare(fn, args[0], args[1], is_unsigned(source))
    if fn == "nextafter" and source != args[0].type:
        # The neighbour of a half is a half: it is found in its own bits.
        halves = [ir.arith.truncf(source, a) for a in args]
        return ir.arith.extf(args[0].type, scalar_float.emit(s, fn, halves))
    if is_float(args[-1].type):
        return scalar_float.emit(s, fn, args)
    return scalar_int.emit(s, fn, args, is_unsigned(source))


_F, _I = ir.arith.CmpFPredicate, ir.arith.CmpIPredicate
_FLOAT_PREDICATES = {
    "eq": _F.OEQ, "ne": _F.UNE, "lt": _F.OLT, "le": _F.OLE, "gt": _F.OGT, "ge": _F.OGE,
}  # fmt: skip
_SIGNED_PREDICATES = {
    "eq": _I.eq, "ne": _I.ne, "lt": _I.slt, "le": _I.sle, "gt": _I.sgt, "ge": _I.sge,
}  # fmt: skip
_UNSIGNED_PREDICATES = {
    "eq": _I.eq, "ne": _I.ne, "lt": _I.ult, "le": _I.ule, "gt": _I.ugt, "ge": _I.uge,
}  # fmt: skip

"""Lanes: a float or integer MLIR value, scalar or vector, with Python's operators.

`x * y + 1.0` builds `arith` ops at the current insertion point, and Python numbers become splat
constants of the lanes' type. Comparisons are ordered: a NaN compares false.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Union

from metadef import ir

Number = int | float
Like = Union["Lanes", int, float]

_FLOATS = {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}
_MANTISSA_BITS = {32: 23, 64: 52}
_F = ir.arith.CmpFPredicate
_I = ir.arith.CmpIPredicate


@dataclass(frozen=True, eq=False)
class Lanes:
    """A value of float, integer or i1 type, or a vector of them."""

    value: ir.Value

    @property
    def type(self) -> ir.Type:
        return self.value.type

    @property
    def element(self) -> ir.Type:
        """The type of one lane."""
        t = self.type
        return t.element_type if isinstance(t, ir.VectorType) else t

    @property
    def width(self) -> int:
        """Bits of one lane."""
        return int(self.element.width)

    @property
    def mantissa_bits(self) -> int:
        """Stored bits of the fraction: 23 for f32, 52 for f64."""
        return _MANTISSA_BITS[self.width]

    @property
    def exponent_bias(self) -> int:
        return int(2 ** (self.width - self.mantissa_bits - 2) - 1)

    @property
    def is_float(self) -> bool:
        return isinstance(self.element, ir.FloatType)

    def with_element(self, element: ir.Type) -> ir.Type:
        """Return the lanes' type with another element type."""
        t = self.type
        return ir.VectorType.get(t.shape, element) if isinstance(t, ir.VectorType) else element

    def splat(self, number: Number) -> Lanes:
        """Return lanes of this type that all hold `number` (integers wrap around)."""
        element = self.element
        if self.is_float:
            attribute = ir.FloatAttr.get(element, float(number))
        else:
            wrapped = int(number) & (2**self.width - 1)
            signed = wrapped - 2**self.width if wrapped >> (self.width - 1) else wrapped
            attribute = ir.IntegerAttr.get(element, signed if self.width > 1 else wrapped)
        t = self.type
        if isinstance(t, ir.VectorType):
            attribute = ir.DenseElementsAttr.get_splat(t, attribute)
        return Lanes(ir.arith.ConstantOp(t, attribute).result)

    def _operand(self, other: Like) -> ir.Value:
        return other.value if isinstance(other, Lanes) else self.splat(other).value

    def __add__(self, other: Like) -> Lanes:
        op = ir.arith.addf if self.is_float else ir.arith.addi
        return Lanes(op(self.value, self._operand(other)))

    def __sub__(self, other: Like) -> Lanes:
        op = ir.arith.subf if self.is_float else ir.arith.subi
        return Lanes(op(self.value, self._operand(other)))

    def __mul__(self, other: Like) -> Lanes:
        op = ir.arith.mulf if self.is_float else ir.arith.muli
        return Lanes(op(self.value, self._operand(other)))

    def __truediv__(self, other: Like) -> Lanes:
        return Lanes(ir.arith.divf(self.value, self._operand(other)))

    def __radd__(self, other: Number) -> Lanes:
        return self.splat(other) + self

    def __rsub__(self, other: Number) -> Lanes:
        return self.splat(other) - self

    def __rmul__(self, other: Number) -> Lanes:
        return self * other

    def __rtruediv__(self, other: Number) -> Lanes:
        return self.splat(other) / self

    def __neg__(self) -> Lanes:
        return Lanes(ir.arith.negf(self.value)) if self.is_float else 0 - self

    def __and__(self, other: Like) -> Lanes:
        return Lanes(ir.arith.andi(self.value, self._operand(other)))

    def __or__(self, other: Like) -> Lanes:
        return Lanes(ir.arith.ori(self.value, self._operand(other)))

    def __xor__(self, other: Like) -> Lanes:
        return Lanes(ir.arith.xori(self.value, self._operand(other)))

    def __lshift__(self, other: Like) -> Lanes:
        return Lanes(ir.arith.shli(self.value, self._operand(other)))

    def __rshift__(self, other: Like) -> Lanes:
        """Shift right, the sign carried along."""
        return Lanes(ir.arith.shrsi(self.value, self._operand(other)))

    def shift_right_logical(self, other: Like) -> Lanes:
        """Shift right, zeros carried in."""
        return Lanes(ir.arith.shrui(self.value, self._operand(other)))

    def _compare(self, other: Like, floats: ir.Attribute, integers: ir.Attribute) -> Lanes:
        if self.is_float:
            return Lanes(ir.arith.cmpf(floats, self.value, self._operand(other)))
        return Lanes(ir.arith.cmpi(integers, self.value, self._operand(other)))

    def __lt__(self, other: Like) -> Lanes:
        return self._compare(other, _F.OLT, _I.slt)

    def __le__(self, other: Like) -> Lanes:
        return self._compare(other, _F.OLE, _I.sle)

    def __gt__(self, other: Like) -> Lanes:
        return self._compare(other, _F.OGT, _I.sgt)

    def __ge__(self, other: Like) -> Lanes:
        return self._compare(other, _F.OGE, _I.sge)

    def equals(self, other: Like) -> Lanes:
        return self._compare(other, _F.OEQ, _I.eq)

    def is_nan(self) -> Lanes:
        return Lanes(ir.arith.cmpf(_F.UNO, self.value, self.value))

    def select(self, yes: Lanes, no: Like) -> Lanes:
        """Choose per lane: these are the i1 conditions."""
        return Lanes(ir.arith.select(self.value, yes.value, yes._operand(no)))

    def at_most(self, high: Number) -> Lanes:
        """Clamp from above; NaN stays (x86's `min` with the constant first)."""
        limit = self.splat(high)
        return (limit < self).select(limit, self)

    def at_least(self, low: Number) -> Lanes:
        """Clamp from below; NaN stays."""
        limit = self.splat(low)
        return (limit > self).select(limit, self)

    def bits(self) -> Lanes:
        """Reinterpret floats as integers of the same width."""
        target = self.with_element(ir.IntegerType.get_signless(self.width))
        return Lanes(ir.arith.bitcast(target, self.value))

    def as_float(self) -> Lanes:
        """Reinterpret integers as floats of the same width."""
        return Lanes(ir.arith.bitcast(self.with_element(_FLOATS[self.width].get()), self.value))

    def to_float(self, width: int) -> Lanes:
        """Convert: signed integers by value, floats to another width."""
        target = self.with_element(_FLOATS[width].get())
        if not self.is_float:
            return Lanes(ir.arith.sitofp(target, self.value))
        if self.width == width:
            return self
        op = ir.arith.extf if self.width < width else ir.arith.truncf
        return Lanes(op(target, self.value))

    def to_int(self, width: int) -> Lanes:
        """Convert integers to another width, the sign carried along."""
        if self.width == width:
            return self
        op = ir.arith.extsi if self.width < width else ir.arith.trunci
        return Lanes(op(self.with_element(ir.IntegerType.get_signless(width)), self.value))


def fma(a: Like, b: Like, c: Like) -> Lanes:
    """Return a * b + c rounded once; at least one operand is Lanes."""
    like = next(x for x in (a, b, c) if isinstance(x, Lanes))
    values = [like._operand(x) for x in (a, b, c)]
    return Lanes(ir.math.fma(*values))


def sqrt(x: Lanes) -> Lanes:
    return Lanes(ir.math.sqrt(x.value))


def absolute(x: Lanes) -> Lanes:
    return Lanes(ir.math.absf(x.value))


def copysign(magnitude: Lanes, sign: Lanes) -> Lanes:
    return Lanes(ir.math.copysign(magnitude.value, sign.value))


def round_even(x: Lanes) -> Lanes:
    return Lanes(ir.math.roundeven(x.value))


def polynomial(coefficients: Sequence[float], t: Lanes) -> Lanes:
    """Evaluate by Horner's rule, lowest degree first."""
    total = t.splat(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = fma(total, t, c)
    return total


def round_to_integer(x: Lanes, scale: float) -> tuple[Lanes, Lanes]:
    """Return x * scale rounded to nearest, as floats and as integers of the same width.

    Adding 1.5 * 2^mantissa leaves the integer in the low bits: |x * scale| < 2^(mantissa - 2).
    """
    magic = x.splat(1.5 * 2.0**x.mantissa_bits)
    shifted = fma(x, scale, magic)
    return shifted - magic, shifted.bits() - magic.bits()


Function = Callable[..., Lanes]


def through_double(function: Function) -> Function:
    """Compute f32 lanes in f64: for functions where f32's own way would save little."""

    @functools.wraps(function)
    def build(*xs: Lanes) -> Lanes:
        width = xs[0].width
        wide = [x.to_float(64) if x.is_float else x for x in xs]
        return function(*wide).to_float(width)

    return build


class Elementwise:
    """A function of Lanes that callers use on MLIR values; f16 and bf16 are computed in f32."""

    __name__: str

    def __init__(self, lanes: Function) -> None:
        functools.update_wrapper(self, lanes)
        #: the function itself, for use in other expansions
        self.lanes = lanes

    def __call__(self, *operands: ir.Value) -> ir.Value:
        """Build the function's ops at the current insertion point."""
        xs = [Lanes(x) for x in operands]
        first = xs[0]
        if not first.is_float or first.width >= 32:
            return self.lanes(*xs).value
        wide = [x.to_float(32) if x.is_float else x for x in xs]
        return ir.arith.truncf(first.type, self.lanes(*wide).value)

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

_MANTISSA_BITS = {32: 23, 64: 52}
#: the numbers of `arith.cmpf`'s ordered predicates and of `arith.cmpi`'s signed ones
_PREDICATES = {"eq": (1, 0), "lt": (4, 2), "le": (5, 3), "gt": (2, 4), "ge": (3, 5)}
_UNORDERED = 14
#: coefficients of a polynomial that is evaluated in halves
_MANY = 8


class Kind:
    """The type of lanes, with what it says worked out once."""

    def __init__(self, type_: ir.Type) -> None:
        self.type = type_
        self.shape = type_.shape if isinstance(type_, ir.VectorType) else None
        self.element = type_ if self.shape is None else type_.element_type
        self.is_float = isinstance(self.element, ir.FloatType)
        self.width = int(self.element.width)

    def of(self, element: ir.Type) -> Kind:
        """Return the kind of as many lanes of another element type."""
        return Kind(element if self.shape is None else ir.VectorType.get(self.shape, element))

    @functools.cached_property
    def bits(self) -> Kind:
        """Integers as wide as these lanes."""
        return self.of(ir.IntegerType.get_signless(self.width)) if self.is_float else self

    @functools.cached_property
    def floats(self) -> Kind:
        """Floats as wide as these lanes."""
        floats = {16: ir.F16Type, 32: ir.F32Type, 64: ir.F64Type}
        return self if self.is_float else self.of(floats[self.width].get())

    @functools.cached_property
    def conditions(self) -> Kind:
        """One bit for each lane."""
        return self.of(ir.IntegerType.get_signless(1))

    def resized(self, width: int) -> Kind:
        """Return lanes of another width, floats or integers as these."""
        integers = self.of(ir.IntegerType.get_signless(width))
        return integers.floats if self.is_float else integers


@dataclass(frozen=True, eq=False)
class Lanes:
    """A value of float, integer or i1 type, or a vector of them."""

    value: ir.Value
    kind: Kind

    @staticmethod
    def of(value: ir.Value) -> Lanes:
        return Lanes(value, Kind(value.type))

    @property
    def is_float(self) -> bool:
        return self.kind.is_float

    @property
    def width(self) -> int:
        """Bits of one lane."""
        return self.kind.width

    @property
    def mantissa_bits(self) -> int:
        """Stored bits of the fraction: 23 for f32, 52 for f64."""
        return _MANTISSA_BITS[self.width]

    @property
    def exponent_bias(self) -> int:
        return int(2 ** (self.width - self.mantissa_bits - 2) - 1)

    def splat(self, number: Number) -> Lanes:
        """Return lanes of this kind that all hold `number` (integers wrap around)."""
        element = self.kind.element
        if self.is_float:
            attribute = ir.FloatAttr.get(element, float(number))
        else:
            wrapped = int(number) & (2**self.width - 1)
            negative = self.width > 1 and wrapped >> (self.width - 1)
            attribute = ir.IntegerAttr.get(
                element, wrapped - 2**self.width if negative else wrapped
            )
        if self.kind.shape is not None:
            attribute = ir.DenseElementsAttr.get_splat(self.kind.type, attribute)
        return build("arith.constant", self.kind, value=attribute)

    def like(self, other: Like) -> Lanes:
        """Return `other` as lanes: a number becomes a constant of this kind."""
        return other if isinstance(other, Lanes) else self.splat(other)

    def _binary(self, floats: str, integers: str, other: Like) -> Lanes:
        return build(floats if self.is_float else integers, self.kind, self, self.like(other))

    def __add__(self, other: Like) -> Lanes:
        return self._binary("arith.addf", "arith.addi", other)

    def __sub__(self, other: Like) -> Lanes:
        return self._binary("arith.subf", "arith.subi", other)

    def __mul__(self, other: Like) -> Lanes:
        return self._binary("arith.mulf", "arith.muli", other)

    def __truediv__(self, other: Like) -> Lanes:
        assert self.is_float
        return build("arith.divf", self.kind, self, self.like(other))

    def __radd__(self, other: Number) -> Lanes:
        return self.splat(other) + self

    def __rsub__(self, other: Number) -> Lanes:
        return self.splat(other) - self

    def __rmul__(self, other: Number) -> Lanes:
        return self * other

    def __rtruediv__(self, other: Number) -> Lanes:
        return self.splat(other) / self

    def __neg__(self) -> Lanes:
        return build("arith.negf", self.kind, self) if self.is_float else 0 - self

    def __and__(self, other: Like) -> Lanes:
        return build("arith.andi", self.kind, self, self.like(other))

    def __or__(self, other: Like) -> Lanes:
        return build("arith.ori", self.kind, self, self.like(other))

    def __xor__(self, other: Like) -> Lanes:
        return build("arith.xori", self.kind, self, self.like(other))

    def __invert__(self) -> Lanes:
        return self ^ -1

    def __lshift__(self, other: Like) -> Lanes:
        return build("arith.shli", self.kind, self, self.like(other))

    def __rshift__(self, other: Like) -> Lanes:
        """Shift right, the sign carried along."""
        return build("arith.shrsi", self.kind, self, self.like(other))

    def shift_right_logical(self, other: Like) -> Lanes:
        """Shift right, zeros carried in."""
        return build("arith.shrui", self.kind, self, self.like(other))

    def _compare(self, predicate: str, other: Like) -> Lanes:
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        number = _PREDICATES[predicate][not self.is_float]
        return build(name, self.kind.conditions, self, self.like(other), predicate=_i64(number))

    def __lt__(self, other: Like) -> Lanes:
        return self._compare("lt", other)

    def __le__(self, other: Like) -> Lanes:
        return self._compare("le", other)

    def __gt__(self, other: Like) -> Lanes:
        return self._compare("gt", other)

    def __ge__(self, other: Like) -> Lanes:
        return self._compare("ge", other)

    def equals(self, other: Like) -> Lanes:
        return self._compare("eq", other)

    def is_nan(self) -> Lanes:
        unordered = _i64(_UNORDERED)
        return build("arith.cmpf", self.kind.conditions, self, self, predicate=unordered)

    def select(self, yes: Lanes, no: Like) -> Lanes:
        """Choose per lane: these are the i1 conditions."""
        return build("arith.select", yes.kind, self, yes, yes.like(no))

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
        return build("arith.bitcast", self.kind.bits, self)

    def as_float(self) -> Lanes:
        """Reinterpret integers as floats of the same width."""
        return build("arith.bitcast", self.kind.floats, self)

    def to_float(self, width: int) -> Lanes:
        """Convert: signed integers by value, floats to another width."""
        if not self.is_float:
            return build("arith.sitofp", self.kind.resized(width).floats, self)
        if self.width == width:
            return self
        name = "arith.extf" if self.width < width else "arith.truncf"
        return build(name, self.kind.resized(width), self)

    def to_int(self, width: int) -> Lanes:
        """Convert integers to another width, the sign carried along."""
        if self.width == width:
            return self
        name = "arith.extsi" if self.width < width else "arith.trunci"
        return build(name, self.kind.resized(width), self)


def build(name: str, kind: Kind, *operands: Lanes, **attributes: ir.Attribute) -> Lanes:
    """Build an op with one result at the current insertion point (the typed builders are slow)."""
    values = [x.value for x in operands]
    op = ir.Operation.create(name, [kind.type], values, attributes or None)
    return Lanes(op.results[0], kind)


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def fma(a: Like, b: Like, c: Like) -> Lanes:
    """Return a * b + c rounded once; at least one operand is Lanes."""
    one = next(x for x in (a, b, c) if isinstance(x, Lanes))
    return build("math.fma", one.kind, one.like(a), one.like(b), one.like(c))


def multiply_add(a: Like, b: Like, c: Like) -> Lanes:
    """Return a * b + c, rounded once or twice as suits the device (`expand-math` says which)."""
    one = next(x for x in (a, b, c) if isinstance(x, Lanes))
    contract = ir.Attribute.parse("#arith.fastmath<contract>")
    operands = (one.like(a), one.like(b), one.like(c))
    return build("math.fma", one.kind, *operands, fastmath=contract)


def sqrt(x: Lanes) -> Lanes:
    return build("math.sqrt", x.kind, x)


def absolute(x: Lanes) -> Lanes:
    return build("math.absf", x.kind, x)


def copysign(magnitude: Lanes, sign: Lanes) -> Lanes:
    return build("math.copysign", sign.kind, magnitude, sign)


def with_sign(magnitude: Lanes, sign: Lanes) -> Lanes:
    """Return `magnitude`, which has no sign of its own, with that of `sign`."""
    sign_bit = sign.bits() & -(2 ** (sign.width - 1))
    return (magnitude.bits() | sign_bit).as_float()


def round_even(x: Lanes) -> Lanes:
    return build("math.roundeven", x.kind, x)


def polynomial(coefficients: Sequence[float], t: Lanes) -> Lanes:
    """Evaluate, lowest degree first: by Horner's rule, in halves if it is long."""
    return (_horner if len(coefficients) < _MANY else in_halves)(coefficients, t)


def in_halves(coefficients: Sequence[float], t: Lanes) -> Lanes:
    """Evaluate a polynomial, even and odd powers apart.

    For one product more the chain of steps that wait for one another is half as long; where many
    of them follow one another, a core does not look far enough ahead to fill the gaps.
    """
    square = t * t
    return fma(_horner(coefficients[1::2], square), t, _horner(coefficients[::2], square))


def _horner(coefficients: Sequence[float], t: Lanes) -> Lanes:
    total = t.splat(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = multiply_add(total, t, c)
    return total


def round_to_integer(x: Lanes, scale: float, bias: int = 0) -> tuple[Lanes, Lanes]:
    """Return n = x * scale rounded to nearest as floats, and n + bias as integers as wide.

    Adding 1.5 * 2^mantissa leaves the integer in the low bits: |x * scale| < 2^(mantissa - 2).
    """
    magic = 1.5 * 2.0**x.mantissa_bits
    biased = x.splat(magic + bias)
    shifted = fma(x, scale, biased)
    return shifted - biased, shifted.bits() - x.splat(magic).bits()


def power_of_two(exponent: Lanes, like: Lanes) -> Lanes:
    """Return 2^(exponent - bias) as floats: `exponent` is biased, as a normal number stores it."""
    return (exponent << like.mantissa_bits).as_float()


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
        xs = [Lanes.of(x) for x in operands]
        first = xs[0]
        if not first.is_float or first.width >= 32:
            return self.lanes(*xs).value
        wide = [x.to_float(32) if x.is_float else x for x in xs]
        return build("arith.truncf", first.kind, self.lanes(*wide)).value

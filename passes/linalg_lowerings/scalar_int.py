"""Integer and bool pointwise fns in `arith`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metadef import ir

from .scalar import Scalars, compare, floor_division, select


def emit(s: Scalars, fn: str, args: Sequence[ir.Value], unsigned: bool) -> ir.Value:
    """Emit `fn` on integers of one type; i1 is a bool, whose sum is `or` and product `and`."""
    if isinstance(args[0].type, ir.IntegerType) and args[0].type.width == 1 and fn in _BOOL:
        return _BOOL[fn](s, *args)
    if fn in _ANY:
        return _ANY[fn](s, *args)
    return (_UNSIGNED if unsigned else _SIGNED)[fn](s, *args)


def _negative(s: Scalars, x: ir.Value) -> ir.Value:
    return compare("lt", x, s.like(x, 0))


def _neg(s: Scalars, x: ir.Value) -> ir.Value:
    return ir.arith.subi(s.like(x, 0), x)


def _abs(s: Scalars, x: ir.Value) -> ir.Value:
    return select(_negative(s, x), _neg(s, x), x)


def _sign(s: Scalars, x: ir.Value) -> ir.Value:
    positive = select(compare("gt", x, s.like(x, 0)), s.like(x, 1), s.like(x, 0))
    return select(_negative(s, x), s.like(x, -1), positive)


def _unsigned_sign(s: Scalars, x: ir.Value) -> ir.Value:
    return select(compare("ne", x, s.like(x, 0)), s.like(x, 1), s.like(x, 0))


def _bitwise_not(s: Scalars, x: ir.Value) -> ir.Value:
    return ir.arith.xori(x, s.like(x, -1))


def _guarded(
    s: Scalars, a: ir.Value, b: ir.Value, divide: Callable[[ir.Value], ir.Value]
) -> ir.Value:
    """Return a signed quotient where dividing by 0 gives 0 and by -1 gives -a: both trap on x86."""
    zero, minus = compare("eq", b, s.like(b, 0)), compare("eq", b, s.like(b, -1))
    safe = select(ir.arith.ori(zero, minus), s.like(b, 1), b)
    quotient = select(minus, _neg(s, a), divide(safe))
    return select(zero, s.like(a, 0), quotient)


def _guarded_remainder(s: Scalars, b: ir.Value, divide: Callable[[ir.Value], ir.Value]) -> ir.Value:
    """Return a signed remainder that is 0 for a divisor of 0 or -1."""
    zero, minus = compare("eq", b, s.like(b, 0)), compare("eq", b, s.like(b, -1))
    return divide(select(ir.arith.ori(zero, minus), s.like(b, 1), b))


def _floordiv(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _guarded(s, a, b, lambda d: floor_division(s, a, d)[0])


def _truncdiv(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _guarded(s, a, b, lambda d: ir.arith.divsi(a, d))


def _remainder(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _guarded_remainder(s, b, lambda d: floor_division(s, a, d)[1])


def _fmod(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _guarded_remainder(s, b, lambda d: ir.arith.remsi(a, d))


def _unsigned_div(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    zero = compare("eq", b, s.like(b, 0))
    return select(zero, s.like(a, 0), ir.arith.divui(a, select(zero, s.like(b, 1), b)))


def _unsigned_rem(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    zero = compare("eq", b, s.like(b, 0))
    return ir.arith.remui(a, select(zero, s.like(b, 1), b))


def _shift(
    s: Scalars, a: ir.Value, b: ir.Value, shift: Callable[..., ir.Value], over: ir.Value
) -> ir.Value:
    """Return the shift, or `over` where the count is negative or too large (undefined in LLVM)."""
    width = s.like(b, ir.IntegerType(b.type).width)
    inside = compare("lt", b, width, unsigned=True)
    return select(inside, shift(a, select(inside, b, s.like(b, 0))), over)


def _shl(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _shift(s, a, b, ir.arith.shli, s.like(a, 0))


def _shr(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _shift(s, a, b, ir.arith.shrsi, select(_negative(s, a), s.like(a, -1), s.like(a, 0)))


def _unsigned_shr(s: Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    return _shift(s, a, b, ir.arith.shrui, s.like(a, 0))


def _pow(s: Scalars, a: ir.Value, b: ir.Value, signed: bool = True) -> ir.Value:
    """Raise by squaring; a negative exponent gives 1 / a**-b in integers: 1, -1 or 0."""
    type_ = a.type
    zero, one = s.like(a, 0), s.like(a, 1)
    loop = ir.scf.WhileOp([type_] * 3, [one, a, b])
    before = loop.before.blocks.append(*[type_] * 3)
    with ir.InsertionPoint(before):
        more = compare("gt", before.arguments[2], zero, unsigned=not signed)
        ir.scf.condition(more, list(before.arguments))
    after = loop.after.blocks.append(*[type_] * 3)
    with ir.InsertionPoint(after):
        power, base, exponent = after.arguments
        odd = compare("ne", ir.arith.andi(exponent, one), zero)
        power = select(odd, ir.arith.muli(power, base), power)
        ir.scf.yield_([power, ir.arith.muli(base, base), ir.arith.shrui(exponent, one)])
    if not signed:
        return loop.results[0]
    odd = compare("ne", ir.arith.andi(b, one), zero)
    minus_one = select(odd, a, one)
    inverse = select(
        compare("eq", a, one), one, select(compare("eq", a, s.like(a, -1)), minus_one, zero)
    )
    return select(_negative(s, b), inverse, loop.results[0])


def _clamp(low: Callable[..., ir.Value], high: Callable[..., ir.Value]) -> Callable[..., ir.Value]:
    return lambda s, x, a, b: high(low(x, a), b)


Table = dict[str, Callable[..., ir.Value]]
_A = ir.arith
_ANY: Table = {
    "neg": _neg,
    "bitwise_not": _bitwise_not,
    "identity": lambda s, x: x,
    "floor": lambda s, x: x,
    "ceil": lambda s, x: x,
    "round": lambda s, x: x,
    "trunc": lambda s, x: x,
    "add": lambda s, a, b: _A.addi(a, b),
    "sub": lambda s, a, b: _A.subi(a, b),
    "mul": lambda s, a, b: _A.muli(a, b),
    "and": lambda s, a, b: _A.andi(a, b),
    "or": lambda s, a, b: _A.ori(a, b),
    "xor": lambda s, a, b: _A.xori(a, b),
    "shl": _shl,
    "fma": lambda s, a, b, c: _A.addi(_A.muli(a, b), c),
}
_SIGNED: Table = {
    "abs": _abs,
    "sign": _sign,
    "relu": lambda s, x: _A.maxsi(x, s.like(x, 0)),
    "floordiv": _floordiv,
    "truncdiv": _truncdiv,
    "remainder": _remainder,
    "fmod": _fmod,
    "pow": _pow,
    "maximum": lambda s, a, b: _A.maxsi(a, b),
    "minimum": lambda s, a, b: _A.minsi(a, b),
    "fmax": lambda s, a, b: _A.maxsi(a, b),
    "fmin": lambda s, a, b: _A.minsi(a, b),
    "shr": _shr,
    "clamp": _clamp(_A.maxsi, _A.minsi),
}
_UNSIGNED: Table = {
    "abs": lambda s, x: x,
    "sign": _unsigned_sign,
    "relu": lambda s, x: x,
    "floordiv": _unsigned_div,
    "truncdiv": _unsigned_div,
    "remainder": _unsigned_rem,
    "fmod": _unsigned_rem,
    "pow": lambda s, a, b: _pow(s, a, b, signed=False),
    "maximum": lambda s, a, b: _A.maxui(a, b),
    "minimum": lambda s, a, b: _A.minui(a, b),
    "fmax": lambda s, a, b: _A.maxui(a, b),
    "fmin": lambda s, a, b: _A.minui(a, b),
    "shr": _unsigned_shr,
    "clamp": _clamp(_A.maxui, _A.minui),
}
_BOOL: Table = {
    "not": _bitwise_not,
    "add": lambda s, a, b: _A.ori(a, b),
    "mul": lambda s, a, b: _A.andi(a, b),
    "maximum": lambda s, a, b: _A.ori(a, b),
    "minimum": lambda s, a, b: _A.andi(a, b),
}

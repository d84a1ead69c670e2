"""Elementwise arithmetic, comparison and logic."""

from __future__ import annotations

from typing import Any

from metadef import ir

from . import build
from .build import as_element, cast, common, pointwise
from .call import Call, Number, Tensor
from .dtypes import bool_type, f32, is_bool, is_float, is_half, opmath
from .registry import converts

_UNARY = {
    "abs": "abs",
    "neg": "neg",
    "sign": "sign",
    "sgn": "sign",
    "exp": "exp",
    "exp2": "exp2",
    "expm1": "expm1",
    "log": "log",
    "log2": "log2",
    "log10": "log10",
    "log1p": "log1p",
    "sqrt": "sqrt",
    "rsqrt": "rsqrt",
    "reciprocal": "reciprocal",
    "sin": "sin",
    "cos": "cos",
    "tan": "tan",
    "asin": "asin",
    "acos": "acos",
    "atan": "atan",
    "sinh": "sinh",
    "cosh": "cosh",
    "tanh": "tanh",
    "asinh": "asinh",
    "acosh": "acosh",
    "atanh": "atanh",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "sigmoid": "sigmoid",
    "lgamma": "lgamma",
    "digamma": "digamma",
    "special_expm1": "expm1",
    "special_exp2": "exp2",
    "special_log1p": "log1p",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_erfinv": "erfinv",
    "special_gammaln": "lgamma",
    "special_digamma": "digamma",
    "special_psi": "digamma",
    "special_expit": "sigmoid",
}


def _register_unary(torch_name: str, fn: str) -> None:
    @converts(f"aten.{torch_name}")
    def convert(call: Call, x: Tensor) -> ir.Value:
        x = as_element(x, call.element)
        if is_bool(call.element) and fn in ("abs", "sign"):
            return x
        return pointwise(fn, x)


for _name, _fn in _UNARY.items():
    _register_unary(_name, _fn)


@converts("aten.relu")
def relu(call: Call, x: ir.Value) -> ir.Value:
    return pointwise("relu", x)


@converts("aten.floor", "aten.ceil", "aten.trunc", "aten.fix", "aten.round")
def rounding(call: Call, x: ir.Value) -> ir.Value:
    """Round floats; integers are what they are."""
    fn = call.name.rsplit(".", 1)[1].replace("fix", "trunc")
    return pointwise(fn, x) if is_float(call.element) else x


@converts("aten.round.decimals", "aten.special_round")
def round_decimals(call: Call, x: ir.Value, decimals: int) -> ir.Value:
    """round(x * 10^d) / 10^d, as torch does it (the division for d < 0)."""
    if not is_float(call.element):
        return x
    wide = cast(x, opmath(call.element))
    ten = build.number(10.0 ** abs(decimals), build.element(wide))
    first, last = ("mul", "div") if decimals >= 0 else ("div", "mul")
    scaled = pointwise(first, wide, ten) if decimals else wide
    rounded = pointwise("round", scaled)
    return cast(pointwise(last, rounded, ten) if decimals else rounded, call.element)


@converts("aten.frac")
def frac(call: Call, x: ir.Value) -> ir.Value:
    return pointwise("sub", x, pointwise("trunc", x))


@converts("aten.square")
def square(call: Call, x: ir.Value) -> ir.Value:
    return pointwise("mul", x, x)


@converts("aten.positive", "aten.real", "aten.conj", "aten.conj_physical", "aten.resolve_conj")
@converts("aten.resolve_neg")
def same(call: Call, x: ir.Value) -> ir.Value:
    return x


@converts("aten.isnan", "aten.isinf")
def is_special(call: Call, x: ir.Value) -> ir.Value:
    if not is_float(build.element(x)):
        return build.fill(build.dims(x), False, bool_type())
    return pointwise(call.name.rsplit(".", 1)[1], x)


@converts("aten.isfinite")
def isfinite(call: Call, x: ir.Value) -> ir.Value:
    if not is_float(build.element(x)):
        return build.fill(build.dims(x), True, bool_type())
    return pointwise("isfinite", x)


@converts("aten.isposinf", "aten.isneginf")
def is_signed_infinity(call: Call, x: ir.Value) -> ir.Value:
    if not is_float(build.element(x)):
        return build.fill(build.dims(x), False, bool_type())
    infinity = float("inf") if call.name.endswith("isposinf") else float("-inf")
    return pointwise("eq", x, build.number(infinity, build.element(x)))


@converts("aten.signbit")
def signbit(call: Call, x: ir.Value) -> ir.Value:
    """True for -0.0 too: the sign is copied onto 1."""
    element = build.element(x)
    if is_bool(element):
        return build.fill(build.dims(x), False, bool_type())
    zero = build.number(0, element)
    if not is_float(element):
        return pointwise("lt", x, zero)
    return pointwise("lt", pointwise("copysign", build.number(1.0, element), x), zero)


@converts("aten.logical_not")
def logical_not(call: Call, x: Tensor) -> ir.Value:
    return pointwise("not", as_element(x, bool_type()))


@converts("aten.bitwise_not")
def bitwise_not(call: Call, x: ir.Value) -> ir.Value:
    return pointwise("not" if is_bool(build.element(x)) else "bitwise_not", x)


def arithmetic(call: Call, fn: str, *xs: Tensor) -> ir.Value:
    """Compute `fn` in the result's element type; in f32 for 16-bit floats with a Python scalar."""
    element = call.element
    numbers = any(not isinstance(x, ir.Value) for x in xs)
    wide = f32() if is_half(element) and numbers else element
    return cast(pointwise(fn, *(as_element(x, wide) for x in xs)), element)


@converts("aten.add.Tensor", "aten.add.Scalar")
def add(call: Call, x: Tensor, y: Tensor, alpha: Number) -> ir.Value:
    if is_bool(call.element):
        return arithmetic(call, "or", x, _scaled(call, y, alpha))
    return arithmetic(call, "add", x, _scaled(call, y, alpha))


@converts("aten.sub.Tensor", "aten.sub.Scalar", "aten.subtract.Tensor")
def sub(call: Call, x: Tensor, y: Tensor, alpha: Number = 1) -> ir.Value:
    return arithmetic(call, "sub", x, _scaled(call, y, alpha))


@converts("aten.rsub.Scalar", "aten.rsub.Tensor")
def rsub(call: Call, x: Tensor, y: Tensor, alpha: Number) -> ir.Value:
    return arithmetic(call, "sub", y, _scaled(call, x, alpha))


def _scaled(call: Call, x: Tensor, alpha: Number) -> Tensor:
    if isinstance(alpha, int | float) and alpha == 1:
        return x
    fn = "and" if is_bool(call.element) else "mul"
    return arithmetic(call, fn, x, alpha)


@converts("aten.mul.Tensor", "aten.mul.Scalar", "aten.multiply.Tensor")
def mul(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "and" if is_bool(call.element) else "mul", x, y)


@converts("aten.div.Tensor", "aten.div.Scalar", "aten.true_divide.Tensor", "aten.divide.Tensor")
def div(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "div", x, y)


@converts("aten.div.Tensor_mode", "aten.div.Scalar_mode")
def div_mode(call: Call, x: Tensor, y: Tensor, mode: str | None) -> ir.Value:
    return arithmetic(call, {None: "div", "floor": "floordiv", "trunc": "truncdiv"}[mode], x, y)


@converts("aten.floor_divide", "aten.floor_divide.Scalar", "aten.__floordiv__.Tensor")
def floor_divide(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "floordiv", x, y)


@converts("aten.remainder.Tensor", "aten.remainder.Scalar", "aten.remainder.Scalar_Tensor")
def remainder(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "remainder", x, y)


@converts("aten.fmod.Tensor", "aten.fmod.Scalar")
def fmod(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "fmod", x, y)


@converts("aten.pow.Tensor_Tensor", "aten.pow.Scalar", "aten.float_power.Tensor_Tensor")
@converts("aten.float_power.Scalar")
def power(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "pow", x, y)


@converts("aten.pow.Tensor_Scalar", "aten.float_power.Tensor_Scalar")
def power_scalar(call: Call, x: ir.Value, exponent: Number) -> ir.Value:
    """Small exponents as eager computes them: by products and roots."""
    wide = as_element(x, opmath(call.element))
    if not isinstance(exponent, int | float):
        return arithmetic(call, "pow", x, exponent)
    if exponent == 2:
        value = pointwise("mul", wide, wide)
    elif exponent == 3:
        value = pointwise("mul", pointwise("mul", wide, wide), wide)
    elif exponent == 1:
        value = wide
    elif exponent == 0:
        value = build.fill(build.dims(x), 1, build.element(wide))
    elif is_float(call.element) and exponent == 0.5:
        value = pointwise("sqrt", wide)
    elif is_float(call.element) and exponent == -0.5:
        value = pointwise("rsqrt", wide)
    elif is_float(call.element) and exponent == -1:
        value = pointwise("reciprocal", wide)
    elif is_float(call.element) and exponent == -2:
        value = pointwise("reciprocal", pointwise("mul", wide, wide))
    else:
        return arithmetic(call, "pow", x, exponent)
    return cast(value, call.element)


@converts("aten.maximum", "aten.max.other", "prims.maximum")
def maximum(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "or" if is_bool(call.element) else "maximum", x, y)


@converts("aten.minimum", "aten.min.other", "prims.minimum")
def minimum(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "and" if is_bool(call.element) else "minimum", x, y)


@converts("aten.fmax", "aten.fmin")
def ignoring_nan(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    """Integers and bools have no NaN to ignore."""
    if not is_float(call.element):
        return (maximum if call.name.endswith("fmax") else minimum)(call, x, y)
    return arithmetic(call, call.name.rsplit(".", 1)[1], x, y)


@converts("aten.atan2", "aten.hypot", "aten.nextafter")
@converts("aten.copysign.Tensor", "aten.copysign.Scalar")
def float_binary(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, call.name.split(".")[2], x, y)


def _register_comparison(fn: str, *names: str) -> None:
    @converts(*(f"aten.{name}.{kind}" for name in (fn, *names) for kind in ("Tensor", "Scalar")))
    def convert(call: Call, x: Tensor, y: Tensor) -> ir.Value:
        return pointwise(fn, *common(x, y))


for _fn, *_names in (
    ("eq",),
    ("ne", "not_equal"),
    ("lt", "less"),
    ("le", "less_equal"),
    ("gt", "greater"),
    ("ge", "greater_equal"),
):
    _register_comparison(_fn, *_names)


@converts("aten.logical_and", "aten.logical_or", "aten.logical_xor")
def logical(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    fn = call.name.rsplit("_", 1)[1]
    return pointwise(fn, as_element(x, bool_type()), as_element(y, bool_type()))


def _register_bitwise(fn: str) -> None:
    names = [f"aten.bitwise_{fn}.{kind}" for kind in ("Tensor", "Scalar", "Scalar_Tensor")]

    @converts(*names, f"aten.__{fn}__.Tensor", f"aten.__{fn}__.Scalar")
    def convert(call: Call, x: Tensor, y: Tensor) -> ir.Value:
        return arithmetic(call, fn, x, y)


for _fn in ("and", "or", "xor"):
    _register_bitwise(_fn)


@converts("aten.bitwise_left_shift.Tensor", "aten.bitwise_left_shift.Tensor_Scalar")
@converts("aten.__lshift__.Scalar", "aten.__lshift__.Tensor")
def shift_left(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "shl", x, y)


@converts("aten.bitwise_right_shift.Tensor", "aten.bitwise_right_shift.Tensor_Scalar")
@converts("aten.__rshift__.Scalar", "aten.__rshift__.Tensor")
def shift_right(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    return arithmetic(call, "shr", x, y)


@converts("aten.where.self", "aten.where.ScalarSelf", "aten.where.ScalarOther", "aten.where.Scalar")
def where(call: Call, condition: ir.Value, x: Tensor, y: Tensor) -> ir.Value:
    a, b = as_element(x, call.element), as_element(y, call.element)
    return pointwise("select", as_element(condition, bool_type()), a, b)


@converts("aten.masked_fill.Scalar", "aten.masked_fill.Tensor")
def masked_fill(call: Call, x: ir.Value, mask: ir.Value, value: Tensor) -> ir.Value:
    if isinstance(value, ir.Value):
        value = build.reshape(value, [])
    filled = as_element(value, call.element)
    selected = pointwise("select", as_element(mask, bool_type()), filled, x)
    return build.broadcast(selected, call.dims) if call.dims is not None else selected


@converts("aten.clamp")
def clamp(call: Call, x: Tensor, low: Number | None, high: Number | None) -> ir.Value:
    return _clamp(call, x, low, high)


@converts("aten.clamp.Tensor")
def clamp_tensor(call: Call, x: Tensor, low: Tensor | None, high: Tensor | None) -> ir.Value:
    return _clamp(call, x, low, high)


@converts("aten.clamp_min", "aten.clamp_min.Tensor")
def clamp_min(call: Call, x: Tensor, low: Tensor) -> ir.Value:
    return _clamp(call, x, low, None)


@converts("aten.clamp_max", "aten.clamp_max.Tensor")
def clamp_max(call: Call, x: Tensor, high: Tensor) -> ir.Value:
    return _clamp(call, x, None, high)


def _clamp(call: Call, x: Tensor, low: Any, high: Any) -> ir.Value:
    """min(max(x, low), high): the upper bound wins, NaN goes through."""
    value = as_element(x, call.element)
    if low is not None:
        value = pointwise("maximum", value, as_element(low, call.element))
    if high is not None:
        value = pointwise("minimum", value, as_element(high, call.element))
    return value


@converts("aten.lerp.Scalar", "aten.lerp.Tensor")
def lerp(call: Call, start: ir.Value, end: ir.Value, weight: Tensor) -> ir.Value:
    """start + w (end - start) for |w| < 0.5, else end - (1 - w)(end - start), as eager."""
    wide = opmath(call.element)
    a, b, w = (as_element(t, wide) for t in (start, end, weight))
    span = pointwise("sub", b, a)
    one = build.number(1, wide)
    near = pointwise("add", a, pointwise("mul", w, span))
    far = pointwise("sub", b, pointwise("mul", span, pointwise("sub", one, w)))
    if isinstance(weight, int | float):
        return cast(near if abs(weight) < 0.5 else far, call.element)
    is_near = pointwise("lt", pointwise("abs", w), build.number(0.5, wide))
    return cast(pointwise("select", is_near, near, far), call.element)


@converts("aten.addcmul", "aten.addcdiv")
def add_combined(call: Call, x: ir.Value, a: Tensor, b: Tensor, value: Number) -> ir.Value:
    wide = opmath(call.element)
    fn = "mul" if call.name.endswith("addcmul") else "div"
    x, a, b = (as_element(t, wide) for t in (x, a, b))
    scaled = a if value == 1 else pointwise("mul", build.number(value, wide), a)
    return cast(pointwise("add", x, pointwise(fn, scaled, b)), call.element)


@converts("aten.xlogy.Tensor", "aten.xlogy.Scalar_Self", "aten.xlogy.Scalar_Other")
@converts("aten.special_xlogy", "aten.special_xlog1py", "aten.special_xlog1py.other_scalar")
def xlogy(call: Call, x: Tensor, y: Tensor) -> ir.Value:
    """x log(y); 0 where x is 0, NaN where y is NaN."""
    wide = opmath(call.element)
    x, y = as_element(x, wide), as_element(y, wide)
    log = "log1p" if "xlog1py" in call.name else "log"
    zero = build.number(0, wide)
    value = pointwise(
        "select", pointwise("eq", x, zero), zero, pointwise("mul", x, pointwise(log, y))
    )
    return cast(pointwise("select", pointwise("isnan", y), y, value), call.element)


@converts("aten.logaddexp", "aten.logaddexp2")
def logaddexp(call: Call, x: ir.Value, y: ir.Value) -> ir.Value:
    """max + log1p(exp(-|x - y|)); equal infinities stay what they are."""
    wide = opmath(call.element)
    x, y = as_element(x, wide), as_element(y, wide)
    largest = pointwise("maximum", x, y)
    gap = pointwise("neg", pointwise("abs", pointwise("sub", x, y)))
    if call.name.endswith("2"):
        rest = pointwise("log2", pointwise("add", build.number(1, wide), pointwise("exp2", gap)))
    else:
        rest = pointwise("log1p", pointwise("exp", gap))
    infinite = pointwise("and", pointwise("isinf", x), pointwise("eq", x, y))
    return cast(pointwise("select", infinite, x, pointwise("add", largest, rest)), call.element)


@converts("aten.heaviside")
def heaviside(call: Call, x: ir.Value, at_zero: ir.Value) -> ir.Value:
    x, at_zero = as_element(x, call.element), as_element(at_zero, call.element)
    zero = build.number(0, call.element)
    step = cast(pointwise("gt", x, zero), call.element)
    return pointwise("select", pointwise("eq", x, zero), at_zero, step)


@converts("aten.deg2rad", "aten.rad2deg")
def angle_unit(call: Call, x: ir.Value) -> ir.Value:
    factor = 0.017453292519943295 if "deg2rad" in call.name else 57.29577951308232
    return arithmetic(call, "mul", x, factor)


@converts("aten.sinc", "aten.special_sinc")
def sinc(call: Call, x: ir.Value) -> ir.Value:
    wide = opmath(call.element)
    scaled = pointwise("mul", as_element(x, wide), build.number(3.141592653589793, wide))
    zero = pointwise("eq", scaled, build.number(0, wide))
    value = pointwise("div", pointwise("sin", scaled), scaled)
    return cast(pointwise("select", zero, build.number(1, wide), value), call.element)


@converts("aten.nan_to_num")
def nan_to_num(
    call: Call, x: ir.Value, nan: float | None, high: float | None, low: float | None
) -> ir.Value:
    element = call.element
    if not is_float(element):
        return x
    largest = {"f16": 65504.0, "bf16": 3.3895313892515355e38, "f32": 3.4028234663852886e38}.get(
        str(element), 1.7976931348623157e308
    )

    def replaced(value: ir.Value, where: ir.Value, by: float) -> ir.Value:
        return pointwise("select", where, build.number(by, element), value)

    plus, minus = build.number(float("inf"), element), build.number(float("-inf"), element)
    value = replaced(x, pointwise("isnan", x), 0.0 if nan is None else nan)
    value = replaced(value, pointwise("eq", x, plus), largest if high is None else high)
    return replaced(value, pointwise("eq", x, minus), -largest if low is None else low)


@converts("aten.isclose")
def isclose(
    call: Call, x: ir.Value, y: ir.Value, rtol: float, atol: float, equal_nan: bool
) -> ir.Value:
    x, y = common(x, y)
    equal = pointwise("eq", x, y)
    if equal_nan and is_float(build.element(x)):
        both = pointwise("and", pointwise("isnan", x), pointwise("isnan", y))
        equal = pointwise("or", equal, both)
    wide = build.element(x) if is_float(build.element(x)) else f32()
    x, y = as_element(x, wide), as_element(y, wide)
    allowed = pointwise(
        "add",
        build.number(atol, wide),
        pointwise("abs", pointwise("mul", build.number(rtol, wide), y)),
    )
    gap = pointwise("abs", pointwise("sub", x, y))
    close = pointwise("and", pointwise("isfinite", gap), pointwise("le", gap, allowed))
    return pointwise("or", equal, close)

"""Activations; those metadef does not name are said by their formula in f32 or wider."""

from __future__ import annotations

from typing import Any

from metadef import ir

from . import build
from .build import as_element, cast, pointwise
from .call import Call, Number
from .dtypes import bool_type, opmath
from .registry import NotModelled, converts


@converts("aten.silu", "aten.mish", "aten.hardswish", "aten.hardsigmoid")
def named(call: Call, x: ir.Value) -> ir.Value:
    return pointwise(call.name.rsplit(".", 1)[1], x)


@converts("aten.gelu")
def gelu(call: Call, x: ir.Value, approximate: str) -> ir.Value:
    return pointwise("gelu_tanh" if approximate == "tanh" else "gelu", x)


@converts("aten.softplus")
def softplus(call: Call, x: ir.Value, beta: Number, threshold: Number) -> ir.Value:
    """softplus(beta x) / beta, and x itself where beta x > threshold."""
    if beta == 1 and threshold == 20:
        return pointwise("softplus", x)
    wide = as_element(x, opmath(call.element))
    element = build.element(wide)
    scaled = pointwise("mul", wide, build.number(beta, element))
    soft = pointwise("log1p", pointwise("exp", scaled))
    linear = pointwise("gt", scaled, build.number(threshold, element))
    soft = pointwise("div", soft, build.number(beta, element))
    return cast(pointwise("select", linear, wide, soft), call.element)


@converts("aten.log_sigmoid")
def log_sigmoid(call: Call, x: ir.Value) -> ir.Value:
    """min(x, 0) - log1p(exp(-|x|))."""
    wide = as_element(x, opmath(call.element))
    least = pointwise("minimum", wide, build.number(0, build.element(wide)))
    tail = pointwise("log1p", pointwise("exp", pointwise("neg", pointwise("abs", wide))))
    return cast(pointwise("sub", least, tail), call.element)


@converts("aten.log_sigmoid_forward")
def log_sigmoid_forward(call: Call, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The second result is eager's buffer for the backward pass, empty on some devices."""
    return log_sigmoid(call, x), build.fill(_result_dims(call, 1), 0, call.element)


def _result_dims(call: Call, result: int) -> Any:
    kind = call.results[result]
    assert kind is not None
    if kind.dims is None:
        raise NotModelled
    return kind.dims


@converts("aten.elu")
def elu(call: Call, x: ir.Value, alpha: Number, scale: Number, input_scale: Number) -> ir.Value:
    wide = as_element(x, opmath(call.element))
    element = build.element(wide)
    inner = pointwise("mul", wide, build.number(input_scale, element)) if input_scale != 1 else wide
    curved = pointwise("mul", pointwise("expm1", inner), _times(alpha, scale, element))
    linear = pointwise("mul", wide, build.number(scale, element)) if scale != 1 else wide
    positive = pointwise("gt", wide, build.number(0, element))
    return cast(pointwise("select", positive, linear, curved), call.element)


def _times(a: Number, b: Number, element: ir.Type) -> ir.Value:
    if isinstance(a, int | float) and isinstance(b, int | float):
        return build.number(a * b, element)
    return pointwise("mul", build.number(a, element), build.number(b, element))


@converts("aten.celu")
def celu(call: Call, x: ir.Value, alpha: float) -> ir.Value:
    return elu(call, x, alpha, 1.0, 1.0 / alpha)


@converts("aten.selu")
def selu(call: Call, x: ir.Value) -> ir.Value:
    return elu(call, x, 1.6732632423543772, 1.0507009873554805, 1.0)


@converts("aten.leaky_relu")
def leaky_relu(call: Call, x: ir.Value, slope: Number) -> ir.Value:
    wide = as_element(x, opmath(call.element))
    element = build.element(wide)
    scaled = pointwise("mul", wide, build.number(slope, element))
    positive = pointwise("gt", wide, build.number(0, element))
    return cast(pointwise("select", positive, wide, scaled), call.element)


@converts("aten.prelu", "aten._prelu_kernel")
def prelu(call: Call, x: ir.Value, weight: ir.Value) -> ir.Value:
    """One slope for each channel (dim 1), or one for all."""
    if build.rank(weight) <= 1 and call.name.endswith("prelu"):
        if build.rank(x) < 2 or build.is_one(build.dims(weight)):
            weight = build.reshape(weight, [])
        else:
            weight = build.along(weight, 1, build.rank(x))
    positive = pointwise("gt", x, build.number(0, call.element))
    return pointwise("select", positive, x, pointwise("mul", weight, x))


@converts("aten.rrelu", "aten.rrelu_with_noise_functional", "aten.rrelu_with_noise")
def rrelu(call: Call, x: ir.Value, *options: Any) -> Any:
    """In eval mode a leaky relu with the mean slope; in training it is random."""
    noise = "noise" in call.name
    lower, upper, training = options[1:4] if noise else options[0:3]
    if training:
        raise NotModelled
    result = leaky_relu(call, x, (lower + upper) / 2)
    return (result, options[0]) if call.name.endswith("functional") else result


@converts("aten.hardtanh")
def hardtanh(call: Call, x: ir.Value, low: Number, high: Number) -> ir.Value:
    lower = pointwise("maximum", x, build.number(low, call.element))
    return pointwise("minimum", lower, build.number(high, call.element))


@converts("aten.relu6")
def relu6(call: Call, x: ir.Value) -> ir.Value:
    return hardtanh(call, x, 0, 6)


@converts("aten.threshold")
def threshold(call: Call, x: ir.Value, limit: Number, value: Number) -> ir.Value:
    low = pointwise("le", x, build.number(limit, call.element))
    return pointwise("select", low, build.number(value, call.element), x)


@converts("aten.hardshrink")
def hardshrink(call: Call, x: ir.Value, limit: Number) -> ir.Value:
    within = pointwise("le", pointwise("abs", x), build.number(limit, call.element))
    return pointwise("select", within, build.number(0, call.element), x)


@converts("aten.softshrink")
def softshrink(call: Call, x: ir.Value, limit: float) -> ir.Value:
    """x - limit, x + limit, or 0 within the limits (NaN stays NaN)."""
    element = call.element
    size = build.number(limit, element)
    above = pointwise("gt", x, size)
    below = pointwise("lt", x, pointwise("neg", size))
    zero = pointwise("mul", x, build.number(0, element))
    low = pointwise("select", below, pointwise("add", x, size), zero)
    return pointwise("select", above, pointwise("sub", x, size), low)


@converts("aten.logit", "aten.special_logit")
def logit(call: Call, x: ir.Value, eps: float | None) -> ir.Value:
    """log(x / (1 - x)) with x clamped to [eps, 1 - eps]."""
    wide = as_element(x, opmath(call.element))
    element = build.element(wide)
    one = build.number(1, element)
    if eps is not None:
        wide = pointwise("maximum", wide, build.number(eps, element))
        wide = pointwise("minimum", wide, build.number(1 - eps, element))
    return cast(pointwise("log", pointwise("div", wide, pointwise("sub", one, wide))), call.element)


@converts("aten.glu")
def glu(call: Call, x: ir.Value, dim: int) -> ir.Value:
    """The first half along `dim`, gated by the sigmoid of the second."""
    dim %= build.rank(x)
    half = build.dims(x)[dim] // 2
    value = build.slice_(x, dim, 0, half)
    gate = build.slice_(x, dim, half, half)
    return pointwise("mul", value, pointwise("sigmoid", gate))


@converts("aten.dropout", "aten.alpha_dropout")
@converts("aten.feature_dropout", "aten.feature_alpha_dropout")
def dropout(call: Call, x: ir.Value, p: float, train: bool) -> ir.Value:
    if train and p != 0:
        raise NotModelled
    return x


@converts("aten.native_dropout")
def native_dropout(call: Call, x: ir.Value, p: float, train: bool | None) -> Any:
    if train and p != 0:
        raise NotModelled
    return x, build.fill(build.dims(x), True, bool_type())

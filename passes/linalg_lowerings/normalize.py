"""Softmax and norms: statistics by generics over the same rows, the rest joins the consumers."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, real, text
from metadef.symbolic import product

from .demand import CHEAP_LOADS
from .expression import (
    EXPENSIVE,
    Apply,
    Constant,
    Expr,
    Load,
    Value,
    apply,
    cast,
    narrow,
    nodes,
    size,
)
from .kernel import Kernel, accumulator_type, broadcast, result_type
from .reduce import fold, restore_dims


def lower_softmax(kernel: Kernel, op: Any) -> list[Value]:
    """max, then exp(x - max) stored, then its sum; the division joins the consumers."""
    _, element = result_type(op)
    dim = integer(op, "dim")
    x = widened(kernel, op.operation.operands[0])
    top = over_row(fold(kernel, x, "greatest", [dim], None), x, dim)
    shifted = Value(x.dims, apply("sub", x.expr, top))
    exponential = Value(x.dims, apply("exp", shifted.expr))
    if boolean(op, "log"):
        total = over_row(fold(kernel, exponential, "sum", [dim], None), x, dim)
        result: Expr = apply("sub", shifted.expr, apply("log", total))
    else:
        exponential = kernel.store(exponential)
        total = over_row(fold(kernel, exponential, "sum", [dim], None), x, dim)
        result = apply("mul", exponential.expr, apply("reciprocal", total))
    return [Value(x.dims, narrow(result, element))]


def over_row(folded: Value, x: Value, dim: int) -> Expr:
    """Return a value without `dim` as an expression in x's space."""
    ones = tuple(d if i != dim else product(()) for i, d in enumerate(x.dims))
    return broadcast(restore_dims(folded, [dim], ones), x.dims).expr


def widened(kernel: Kernel, old: ir.Value) -> Value:
    """Return a value that several generics will read, in f32 for halves.

    What takes more than a load and a step or two to compute is stored first.
    """
    value = kernel.value(old)
    found = nodes(value.expr)
    loads = sum(isinstance(n, Load) for n in found)
    steps = [n for n in found if isinstance(n, Apply)]
    costly = any(n.fn in EXPENSIVE for n in steps)
    if costly or loads >= CHEAP_LOADS or len(steps) > 2:
        value = kernel.env[old] = kernel.store(value, old)
    return Value(value.dims, cast(value.expr, accumulator_type(value.element)))


def lower_norm(kernel: Kernel, op: Any) -> list[Value]:
    """Sum, then sum of centred squares (two passes over the row), then one expression.

    layer: `(x - mean) * rsqrt(var + eps) * scale + bias`;
    rms: `x * rsqrt(mean(x^2) + eps) * scale + bias`.
    """
    _, element = result_type(op)
    axes = integer(op, "axes")
    x = widened(kernel, op.operation.operands[0])
    rank = len(x.dims)
    reduced = list(range(rank - axes, rank))
    count = cast(size(product(x.dims[rank - axes :])), x.element)
    # A row's value moves with the leading dims only: its expression is one in x's space too.
    centred = x.expr
    if text(op, "kind") == "layer":
        mean = _divided(fold(kernel, x, "sum", reduced, None).expr, count)
        centred = apply("sub", x.expr, mean)
    squares = Value(x.dims, apply("mul", centred, centred))
    variance = _divided(fold(kernel, squares, "sum", reduced, None).expr, count)
    eps = Constant(x.element, real(op, "eps"))
    result: Expr = apply("mul", centred, apply("rsqrt", apply("add", variance, eps)))
    parameters = [
        cast(broadcast(kernel.value(p), x.dims).expr, x.element)
        for p in list(op.operation.operands)[1:]
    ]
    if parameters:
        result = apply(("mul", "fma")[len(parameters) - 1], result, *parameters)
    return [Value(x.dims, narrow(result, element))]


def _divided(total: Expr, count: Expr) -> Expr:
    if isinstance(count, Constant) and count.value != 0:
        return apply("mul", total, Constant(total.element, 1 / count.value))
    return apply("div", total, count)

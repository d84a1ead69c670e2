"""Reductions: a fill with the identity and one generic whose body computes the operand."""

from __future__ import annotations

import math
from collections.abc import Callable
from math import prod
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import integers, text
from metadef.symbolic import Dim, product

from . import scalar
from .expression import (
    Constant,
    Expr,
    Load,
    Value,
    apply,
    cast,
    dim_exprs,
    index,
    narrow,
    size,
    substitute,
)
from .kernel import Kernel, accumulator_type, result_type

# So many rows keep all cores busy; of fewer, long ones are folded in parts.
_ENOUGH_ROWS = 32
_LONG_FOLD = 1 << 15
_MOST_PARTS = 64

Combine = Callable[[scalar.Scalars, ir.Value, ir.Value], ir.Value]
_FNS = {"sum": "add", "prod": "mul", "max": "maximum", "min": "minimum", "any": "or", "all": "and"}


def lower_reduce(kernel: Kernel, op: Any) -> list[Value]:
    """Fold the dims; mean is a sum and a scaling that joins the consumers."""
    x = kernel.value(op.operation.operands[0])
    fn, dims = text(op, "fn"), integers(op, "dims")
    result_dims, element = result_type(op)
    result = op.operation.results[0]
    if fn in ("argmax", "argmin"):
        return [_arg_reduce(kernel, x, fn, dims[0], result, result_dims)]
    if fn == "mean":
        total = fold(kernel, x, "sum", dims, None)
        count = cast(size(product([x.dims[d] for d in dims])), total.element)
        if isinstance(count, Constant) and count.value != 0:
            scaled: Expr = apply("mul", total.expr, Constant(total.element, 1 / count.value))
        else:
            scaled = apply("div", total.expr, count)
        value = Value(total.dims, narrow(scaled, element))
    else:
        value = fold(kernel, x, fn, dims, result, element)
        value = Value(value.dims, narrow(value.expr, element))
    return [restore_dims(value, dims, result_dims)]


def fold(
    kernel: Kernel,
    x: Value,
    fn: str,
    dims: list[int],
    result: ir.Value | None,
    element: ir.Type | None = None,
) -> Value:
    """Emit fill and generic; return the folded value without the dims, in the accumulator's type.

    `result` is the old value whose output may hold the result, if the types agree.
    """
    parts = _in_parts(x, dims)
    if parts is not None:
        # Threads fold the parts; what is left to one of them is short.
        x = fold(kernel, parts[0], fn, parts[1], None, element)
        dims = parts[2]
    element = element if element is not None else x.element
    accumulator = accumulator_type(element) if fn in ("sum", "prod") else element
    kept = [i for i in range(len(x.dims)) if i not in dims]
    kept_dims = [x.dims[i] for i in kept]
    target, map_ = kernel.destination(
        result if accumulator == element else None, kept_dims, accumulator
    )
    start = kernel.fill(target, accumulator, identity(fn, accumulator))
    positions = [ir.AffineExpr.get_dim(i) for i in kept]
    out_map = tuple(positions[e.position] for e in map_)
    combine = combiner(fn, accumulator)
    (tensor,) = kernel.generic(
        x.dims,
        ["reduction" if i in dims else "parallel" for i in range(len(x.dims))],
        [cast(x.expr, accumulator)],
        [(start, out_map, accumulator)],
        lambda scalars, sums: [combine(kernel.scalars(), sums[0], scalars[0])],
    )
    tensor_dims = tuple(kept_dims[e.position] for e in map_)
    return Value(tuple(kept_dims), Load(accumulator, tensor, tensor_dims, map_))


def _in_parts(x: Value, dims: list[int]) -> tuple[Value, list[int], list[int]] | None:
    """Split the folding of much into few: x, the dims to fold first, and what is to be folded then.

    The parts are the turns of the first dim, where others are folded with it, or else stretches of
    the only one.
    """
    if not dims or not all(d.is_static for d in x.dims):
        return None
    kept = prod(d.value for i, d in enumerate(x.dims) if i not in dims)
    folded = prod(x.dims[d].value for d in dims)
    if not 0 < kept < _ENOUGH_ROWS or folded < _LONG_FOLD:
        return None
    outer = next((d for d in dims if x.dims[d].value > 1), dims[0])
    extent = x.dims[outer].value
    if extent < folded:
        after = outer - sum(d < outer for d in dims)
        return x, [d for d in dims if d != outer], [after]
    parts = max(n for n in range(1, _MOST_PARTS + 1) if extent % n == 0)
    if parts == 1:
        return None
    split = [*x.dims[:outer], Dim.of(parts), Dim.of(extent // parts), *x.dims[outer + 1 :]]
    positions = list(dim_exprs(len(split)))
    positions[outer : outer + 2] = [positions[outer] * (extent // parts) + positions[outer + 1]]
    expr = substitute(x.expr, positions, len(split))
    others = [d + (d > outer) for d in dims if d != outer]
    after = outer - sum(d < outer for d in others)
    return Value(tuple(split), expr), sorted([outer + 1, *others]), [after]


def combiner(fn: str, element: ir.Type) -> Combine:
    """Return the scalar code that adds an element to what was folded.

    `greatest` is max but passes NaN over, which takes one instruction and not five: for those who
    meet the NaN again.
    """
    if fn == "greatest":
        return lambda s, total, x: scalar.select(scalar.compare("gt", x, total), x, total)
    name = _FNS[fn]
    return lambda s, total, x: scalar.apply(s, name, [total, x], element, element)


def identity(fn: str, element: ir.Type) -> int | float:
    """Return the number that changes nothing under `fn`."""
    if fn in ("sum", "any"):
        return 0
    if fn in ("prod", "all"):
        return 1
    if isinstance(element, ir.FloatType):
        return math.inf if fn == "min" else -math.inf
    assert isinstance(element, ir.IntegerType)
    if scalar.is_unsigned(element):
        return 0 if fn == "max" else (1 << element.width) - 1
    half = 1 << (element.width - 1)
    return -half if fn == "max" else half - 1


def restore_dims(value: Value, dims: list[int], result_dims: tuple[Dim, ...]) -> Value:
    """Return the folded value with the dims back as 1 if the result keeps them."""
    if len(value.dims) == len(result_dims):
        return value
    kept = [i for i in range(len(result_dims)) if i not in dims]
    positions = [ir.AffineExpr.get_dim(i) for i in kept]
    return Value(result_dims, substitute(value.expr, positions, len(result_dims)))


def _arg_reduce(
    kernel: Kernel, x: Value, fn: str, dim: int, result: ir.Value, result_dims: tuple[Dim, ...]
) -> Value:
    """One generic with two results, best value and its index: the first of equals, or first NaN."""
    i64 = ir.IntegerType.get_signless(64)
    kept = [i for i in range(len(x.dims)) if i != dim]
    kept_dims = [x.dims[i] for i in kept]
    target, map_ = kernel.destination(result, kept_dims, i64)
    best = kernel.fill(kernel.empty(kept_dims, x.element), x.element, identity(fn[3:], x.element))
    found = kernel.fill(target, i64, 0)
    positions = tuple(ir.AffineExpr.get_dim(i) for i in kept)
    out_map = tuple(positions[e.position] for e in map_)
    is_float = isinstance(x.element, ir.FloatType)
    compare = "gt" if fn == "argmax" else "lt"

    def body(scalars: list[ir.Value], results: list[ir.Value]) -> list[ir.Value]:
        (value, position), (top, at) = scalars, results
        better = scalar.compare(compare, value, top, scalar.is_unsigned(x.element))
        if is_float:
            fresh = ir.arith.andi(
                scalar.compare("ne", value, value), scalar.compare("eq", top, top)
            )
            better = ir.arith.ori(better, fresh)
        return [scalar.select(better, value, top), scalar.select(better, position, at)]

    where = cast(index(ir.AffineExpr.get_dim(dim)), i64)
    outs = [(best, positions, x.element), (found, out_map, i64)]
    kinds = ["reduction" if i == dim else "parallel" for i in range(len(x.dims))]
    tensor = kernel.generic(x.dims, kinds, [x.expr, where], outs, body)[1]
    tensor_dims = tuple(kept_dims[e.position] for e in map_)
    value = Value(tuple(kept_dims), Load(i64, tensor, tensor_dims, map_))
    return restore_dims(value, [dim], result_dims)

"""Scans along one dim: a scalar loop that carries the running value."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, text

from . import scalar
from .expression import Value, cast
from .kernel import Kernel, compute_type, result_type, tensor_value
from .loops import loop, rows, write
from .reduce import combiner, identity


def lower_scan(kernel: Kernel, op: Any) -> list[Value]:
    """Loops over the other dims, and inside them one over `dim`; sums and products are in f64."""
    dims, element = result_type(op)
    fn, dim, reverse = text(op, "fn"), integer(op, "dim"), boolean(op, "reverse")
    x = kernel.value(op.operation.operands[0])
    running = element
    if isinstance(element, ir.FloatType) and fn not in ("max", "min"):
        running = ir.F64Type.get()
    combine = _logsumexp if fn == "logsumexp" else combiner(fn, running)
    start = identity("max" if fn == "logsumexp" else fn, running)
    extents = [kernel.size(d) for d in dims]
    last = ir.arith.subi(extents[dim], kernel.size(1)) if reverse else None
    first = kernel.constant(compute_type(running), start)
    target = kernel.plain_destination(op.operation.results[0], dims, element)
    wide = cast(x.expr, running)

    def row(indices: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        def step(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            along = i if last is None else ir.arith.subi(last, i)
            at = [*indices[:dim], along, *indices[dim:]]
            (value,) = kernel.evaluate([wide], {}, at)
            total = combine(kernel.scalars(), carried[1], value)
            stored = scalar.cast(kernel.scalars(), total, running, element)
            return [write(kernel, stored, carried[0], at, element), total]

        return loop(kernel, kernel.size(0), extents[dim], [tensors[0], first], step)[:1]

    others = [*extents[:dim], *extents[dim + 1 :]]
    (tensor,) = rows(kernel, others, [target], row)
    return [tensor_value(tensor, dims, element)]


def _logsumexp(s: scalar.Scalars, a: ir.Value, b: ir.Value) -> ir.Value:
    """log(exp(a) + exp(b)) by the larger one; equal infinities stay."""
    high, low = ir.arith.maximumf(a, b), ir.arith.minimumf(a, b)
    tail = ir.math.log1p(ir.math.exp(ir.arith.subf(low, high)))
    equal = scalar.compare("eq", high, low)
    infinite = scalar.compare("eq", ir.math.absf(high), s.like(a, float("inf")))
    return scalar.select(ir.arith.andi(equal, infinite), high, ir.arith.addf(high, tail))

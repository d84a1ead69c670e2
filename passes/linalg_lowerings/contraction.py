"""Matrix products: a fill and one generic of multiply and add; views sit in its maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean
from metadef.symbolic import Dim, same

from . import scalar
from .expression import Load, Value, compose, constant_expr, narrow
from .kernel import Kernel, accumulator_type, result_type


def lower_contraction(kernel: Kernel, op: Any) -> list[Value]:
    """[batch.., M, K] x [batch.., K, N]: parallel loops batch, M, N and a reduction over K."""
    lhs, rhs = (kernel.loaded(x) for x in op.operation.operands)
    dims, element = result_type(op)
    rank = len(dims)
    m, n, k = (ir.AffineExpr.get_dim(i) for i in (rank - 2, rank - 1, rank))
    left, right = [m, k], [k, n]
    if boolean(op, "transpose_lhs"):
        left.reverse()
    if boolean(op, "transpose_rhs"):
        right.reverse()
    depth = lhs.dims[-2 if boolean(op, "transpose_lhs") else -1]
    return [
        multiply_add(
            kernel,
            [*dims, depth],
            ["parallel"] * rank + ["reduction"],
            (lhs, [*_batch(lhs, dims), *left]),
            (rhs, [*_batch(rhs, dims), *right]),
            dims,
            element,
            op.operation.results[0],
        )
    ]


def _batch(x: Value, dims: Sequence[Dim]) -> list[ir.AffineExpr]:
    """Return the positions of an operand's batch dims, which broadcast to the result's."""
    offset = len(dims) - len(x.dims)
    return [
        constant_expr(0)
        if same(d, 1) and not same(dims[i + offset], 1)
        else ir.AffineExpr.get_dim(i + offset)
        for i, d in enumerate(x.dims[:-2])
    ]


def multiply_add(
    kernel: Kernel,
    loops: Sequence[Dim],
    iterators: Sequence[str],
    lhs: tuple[Value, Sequence[ir.AffineExpr]],
    rhs: tuple[Value, Sequence[ir.AffineExpr]],
    dims: Sequence[Dim],
    element: ir.Type,
    result: ir.Value | None,
    order: Sequence[int] | None = None,
) -> Value:
    """Emit `sum += lhs * rhs` over `loops`; return the sums of `dims` as a value of `element`.

    `dims` are the extents of the parallel loops `order` (0, 1, ... if not given). Halves are
    summed in f32 and rounded by whoever reads the value. An integer rhs of a product of floats
    becomes one as it is read.
    """
    accumulator = accumulator_type(element)
    order = list(order) if order is not None else list(range(len(dims)))
    target, map_ = kernel.destination(result if accumulator == element else None, dims, accumulator)
    start = kernel.fill(target, accumulator, 0)
    out_map = tuple(ir.AffineExpr.get_dim(order[e.position]) for e in map_)
    operands = [_moved(value, positions, len(loops)) for value, positions in (lhs, rhs)]
    multiply, add = (("mul", "add"), ("and", "or"))[_is_bool(accumulator)]

    def body(scalars: list[ir.Value], sums: list[ir.Value]) -> list[ir.Value]:
        s = kernel.scalars()
        left, right = scalars
        if right.type != left.type:
            right = scalar.cast(s, right, rhs[0].element, accumulator)
        product = scalar.apply(s, multiply, [left, right], accumulator, accumulator)
        return [scalar.apply(s, add, [sums[0], product], accumulator, accumulator)]

    (tensor,) = kernel.generic(loops, iterators, operands, [(start, out_map, accumulator)], body)
    kernel.accumulated.add(tensor)
    tensor_dims = tuple(dims[e.position] for e in map_)
    load = Load(accumulator, tensor, tensor_dims, map_)
    return Value(tuple(dims), narrow(load, element))


def _moved(value: Value, positions: Sequence[ir.AffineExpr], rank: int) -> Load:
    assert isinstance(value.expr, Load)
    moved = tuple(compose(e, positions, rank) for e in value.expr.map)
    return replace(value.expr, map=moved)


def _is_bool(element: ir.Type) -> bool:
    return isinstance(element, ir.IntegerType) and element.width == 1

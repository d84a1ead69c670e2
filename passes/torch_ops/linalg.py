"""Vector algebra: cross products, distances, products of several matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.shapes import broadcast_dims

from . import build
from .build import as_element, dims, pointwise, rank, reduce, slice_
from .call import Call, Number
from .contraction import matmul_values
from .reduce import norm_value
from .registry import NotModelled, converts


@converts("aten.linalg_cross", "aten.cross")
def cross(call: Call, x: ir.Value, y: ir.Value, dim: int | None) -> ir.Value:
    """x1 y2 - x2 y1 and so on: three slices of each operand along `dim`."""
    size = broadcast_dims(dims(x), dims(y))
    if dim is None:
        dim = next(i for i, d in enumerate(size) if d.is_static and d.value == 3)
    dim %= len(size)
    x, y = (build.broadcast(as_element(t, call.element), size) for t in (x, y))
    a = [slice_(x, dim, i, 1) for i in range(3)]
    b = [slice_(y, dim, i, 1) for i in range(3)]
    parts = []
    for i, j in ((1, 2), (2, 0), (0, 1)):
        parts.append(pointwise("sub", pointwise("mul", a[i], b[j]), pointwise("mul", a[j], b[i])))
    return build.concat(parts, dim)


@converts("aten.linalg_vecdot")
def vecdot(call: Call, x: ir.Value, y: ir.Value, dim: int) -> ir.Value:
    product = pointwise("mul", x, y)
    return reduce("sum", product, [dim % rank(product)])


@converts("aten.linalg_multi_dot", "aten.chain_matmul")
def multi_dot(call: Call, xs: Sequence[ir.Value]) -> ir.Value:
    """Multiply from the left, or from the right when the last one is a vector."""
    matrices = list(xs)
    if rank(matrices[-1]) == 1:
        value = matrices.pop()
        while matrices:
            value = matmul_values(matrices.pop(), value)
        return value
    value = matrices[0]
    for matrix in matrices[1:]:
        value = matmul_values(value, matrix)
    return value


@converts("aten.linalg_matrix_power", "aten.matrix_power")
def matrix_power(call: Call, x: ir.Value, exponent: int) -> ir.Value:
    """By repeated squaring; the inverse powers are not ours."""
    if exponent < 0:
        raise NotModelled
    size = dims(x)[-2:]
    if exponent == 0:
        diagonal = pointwise("eq", build.iota(size, 0), build.iota(size, 1))
        return build.broadcast(build.cast(diagonal, call.element), dims(x))
    result: ir.Value | None = None
    while exponent:
        if exponent % 2:
            result = x if result is None else matmul_values(result, x)
        exponent //= 2
        if exponent:
            x = matmul_values(x, x)
    assert result is not None
    return result


@converts("aten._cdist_forward")
def cdist(call: Call, x: ir.Value, y: ir.Value, order: Number, mode: Any) -> ir.Value:
    """The p-norm of the difference of each row of x [.., P, M] and each of y [.., R, M]."""
    gap = pointwise("sub", build.unsqueeze(x, rank(x) - 1), build.unsqueeze(y, rank(y) - 2))
    if build.is_zero(dims(gap)[-1]):
        return build.fill(dims(gap)[:-1], 0, call.element)
    return norm_value(gap, order, [rank(gap) - 1], False, call.element)


@converts("aten.cartesian_prod")
def cartesian_product(call: Call, xs: Sequence[ir.Value]) -> ir.Value:
    """Every combination, the last vector varying fastest: [n0 n1 .., vectors]."""
    if len(xs) == 1:
        return xs[0]
    sizes = [dims(x)[0] for x in xs]
    columns = []
    for i, x in enumerate(xs):
        wide = build.broadcast(build.along(x, i, len(xs)), sizes)
        columns.append(build.unsqueeze(wide, len(xs)))
    joined = build.concat(columns, len(xs))
    total = sizes[0]
    for size in sizes[1:]:
        total = total * size
    return build.reshape(joined, [total, len(xs)])


@converts("aten.angle")
def angle(call: Call, x: ir.Value) -> ir.Value:
    """Of real numbers: 0, pi below 0, NaN for NaN."""
    value = as_element(x, call.element)
    zero = build.number(0, call.element)
    turned = build.number(3.141592653589793, call.element)
    result = pointwise("select", pointwise("lt", value, zero), turned, zero)
    return pointwise("select", pointwise("isnan", value), value, result)

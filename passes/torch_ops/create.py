"""Tensors from nothing, and changes of dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.symbolic import Dim, ceildiv

from . import build
from .build import as_element, cast, dims, pointwise, rank
from .call import Call, Number, ScalarTensor, Tensor
from .dtypes import f64, i64, is_float, is_half
from .registry import NotModelled, converts

Sizes = Sequence[Any]


def filled(call: Call, sizes: Sizes, value: Number) -> ir.Value:
    if isinstance(value, int | float):
        return build.fill(sizes, value, call.element)
    return build.broadcast(build.number(value, call.element), sizes)


@converts("aten.full")
def full(call: Call, sizes: Sizes, value: Number, *options: Any) -> ir.Value:
    return filled(call, sizes, value)


@converts("aten.new_full")
def new_full(call: Call, x: ir.Value, sizes: Sizes, value: Number, *options: Any) -> ir.Value:
    return filled(call, sizes, value)


@converts("aten.full_like")
def full_like(call: Call, x: ir.Value, value: Number, *options: Any) -> ir.Value:
    return filled(call, dims(x), value)


@converts("aten.fill.Scalar", "aten.fill.Tensor", "aten.fill_.Scalar")
def fill(call: Call, x: ir.Value, value: Tensor) -> ir.Value:
    return build.broadcast(as_element(value, call.element), dims(x))


@converts("aten.zeros", "aten.empty.memory_format", "aten.empty_strided", "aten.empty_permuted")
def zeros(call: Call, sizes: Sizes, *options: Any) -> ir.Value:
    """What is left uninitialised by torch is zero here."""
    return filled(call, sizes, 0)


@converts("aten.ones")
def ones(call: Call, sizes: Sizes, *options: Any) -> ir.Value:
    return filled(call, sizes, 1)


@converts("aten.zeros_like", "aten.empty_like", "aten.zero")
def zeros_like(call: Call, x: ir.Value, *options: Any) -> ir.Value:
    return filled(call, dims(x), 0)


@converts("aten.ones_like")
def ones_like(call: Call, x: ir.Value, *options: Any) -> ir.Value:
    return filled(call, dims(x), 1)


@converts("aten.new_zeros", "aten.new_empty", "aten.new_empty_strided")
def new_zeros(call: Call, x: ir.Value, sizes: Sizes, *options: Any) -> ir.Value:
    return filled(call, sizes, 0)


@converts("aten.new_ones")
def new_ones(call: Call, x: ir.Value, sizes: Sizes, *options: Any) -> ir.Value:
    return filled(call, sizes, 1)


@converts("aten.scalar_tensor", "aten.tensor.int", "aten.tensor.float", "aten.tensor.bool")
def scalar_tensor(call: Call, value: Number, *options: Any) -> ir.Value:
    return build.number(value, call.element)


@converts("aten.arange")
def arange(call: Call, end: Number, *options: Any) -> ir.Value:
    return _arange(call, 0, end, 1)


@converts("aten.arange.start")
def arange_start(call: Call, start: Number, end: Number, *options: Any) -> ir.Value:
    return _arange(call, start, end, 1)


@converts("aten.arange.start_step")
def arange_step(call: Call, start: Number, end: Number, step: Number, *options: Any) -> ir.Value:
    return _arange(call, start, end, step)


@converts("prims.iota")
def prims_iota(call: Call, length: Any, start: Number, step: Number, *options: Any) -> ir.Value:
    return _progression(call, length, start, step)


def _arange(call: Call, start: Number, end: Number, step: Number) -> ir.Value:
    """Count from start up to, but without, end; the length is ceil((end - start) / step)."""
    if call.dims is not None:
        return _progression(call, call.dims[0], start, step)
    if isinstance(step, int) and not isinstance(start, float) and not isinstance(end, float):
        if isinstance(start, ScalarTensor) or isinstance(end, ScalarTensor):
            raise NotModelled
        span = Dim.of(end) - Dim.of(start)
        length = ceildiv(span, step) if step > 0 else ceildiv(-span, -step)
        return _progression(call, length, start, step)
    raise NotModelled


def _progression(call: Call, length: Any, start: Number, step: Number) -> ir.Value:
    """Return start + step * i in the result's dtype; half floats are rounded from f32."""
    element = call.element
    exact = (
        isinstance(start, int | float)
        and isinstance(step, int | float)
        and (is_float(element) or (isinstance(start, int) and isinstance(step, int)))
    )
    if exact and not is_half(element):
        assert isinstance(start, int | float) and isinstance(step, int | float)
        return build.iota([length], 0, start, step, element)
    whole = all(isinstance(n, int | Dim) for n in (start, step))
    wide = i64() if whole else f64()
    index = cast(build.iota([length], 0), wide)
    scaled = pointwise("mul", index, build.number(step, wide)) if step != 1 else index
    moved = pointwise("add", scaled, build.number(start, wide)) if start != 0 else scaled
    return cast(moved, element)


@converts("aten.linspace")
def linspace(call: Call, start: Any, end: Any, steps: int, *options: Any) -> ir.Value:
    """Count up from start in the first half and down from end in the second, as eager does."""
    if not (isinstance(start, int | float) and isinstance(end, int | float)):
        raise NotModelled
    if steps <= 1:
        return build.fill([steps], start, call.element)
    wide = f64()
    step = (end - start) / (steps - 1)
    index = cast(build.iota([steps], 0), wide)
    up = pointwise(
        "add", build.number(start, wide), pointwise("mul", index, build.number(step, wide))
    )
    left = cast(build.iota([steps], 0, steps - 1, -1), wide)
    down = pointwise(
        "sub", build.number(end, wide), pointwise("mul", left, build.number(step, wide))
    )
    first_half = pointwise("lt", build.iota([steps], 0), build.number(steps // 2, i64()))
    return cast(pointwise("select", first_half, up, down), call.element)


@converts("aten.logspace")
def logspace(call: Call, start: Any, end: Any, steps: int, base: float, *options: Any) -> ir.Value:
    if not (isinstance(start, int | float) and isinstance(end, int | float)):
        raise NotModelled
    step = (end - start) / (steps - 1) if steps > 1 else 0.0
    exponents = build.iota([steps], 0, float(start), step, f64())
    return cast(pointwise("pow", build.number(base, f64()), exponents), call.element)


@converts("aten.eye", "aten.eye.m")
def eye(call: Call, rows: Any, *options: Any) -> ir.Value:
    columns = options[0] if call.name.endswith(".m") else rows
    size = [rows, columns]
    diagonal = pointwise("eq", build.iota(size, 0), build.iota(size, 1))
    return cast(diagonal, call.element)


@converts("aten.tril", "aten.triu")
def triangle(call: Call, x: ir.Value, offset: Any) -> ir.Value:
    """Keep columns j with j - i <= offset (tril) or >= offset (triu); the rest is 0."""
    size = dims(x)[-2:]
    distance = pointwise("sub", build.iota(size, 1), build.iota(size, 0))
    fn = "le" if call.name.endswith("tril") else "ge"
    kept = pointwise(fn, distance, build.number(offset, i64()))
    return pointwise("select", kept, x, build.number(0, call.element))


@converts("aten.one_hot")
def one_hot(call: Call, x: ir.Value, classes: int) -> ir.Value:
    if classes < 0:
        raise NotModelled
    last = build.unsqueeze(x, rank(x))
    return cast(pointwise("eq", last, build.iota([classes], 0)), call.element)


@converts("aten.meshgrid", "aten.meshgrid.indexing")
def meshgrid(call: Call, xs: list[ir.Value], indexing: str = "ij") -> list[ir.Value]:
    sizes: list[Any] = [dims(x)[0] if rank(x) else 1 for x in xs]
    order = list(range(len(xs)))
    if indexing == "xy" and len(xs) >= 2:
        order[:2] = [1, 0]
    wide = [sizes[i] for i in order]
    return [
        build.broadcast(build.along(build.reshape(x, [sizes[i]]), order.index(i), len(xs)), wide)
        for i, x in enumerate(xs)
    ]


@converts("aten._to_copy", "aten.to.dtype_layout", "prims.convert_element_type")
@converts("aten.type_as", "aten.to.dtype", "aten.to.other", "aten.to.device", "aten.to.prim_Device")
@converts("prims.device_put", "aten._autocast_to_reduced_precision")
@converts("aten._autocast_to_full_precision")
def to_dtype(call: Call, x: Tensor, *options: Any) -> Tensor:
    """The result's dtype says it; layouts and devices are not ours to change."""
    return as_element(x, call.element)


@converts("aten.copy", "aten.copy_")
def copy(call: Call, x: ir.Value, source: Tensor, non_blocking: bool = False) -> ir.Value:
    return build.broadcast(as_element(source, call.element), dims(x))


@converts("aten.view.dtype")
def view_dtype(call: Call, x: ir.Value, dtype: int) -> ir.Value:
    if build.element(x) != call.element:
        raise NotModelled
    return x

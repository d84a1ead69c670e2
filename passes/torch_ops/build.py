"""What conversions build with: metadef's builders, without the ops that would change nothing.

A torch operand may be a Python number; `number`, `as_element` and `common` turn it into a rank-0
tensor of the element type that torch's promotion gives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.broadcast import broadcast as _broadcast
from metadef.dialects.metadef.ops.concat import concat as _concat
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.dim import dim as dim_value
from metadef.dialects.metadef.ops.fill import fill as _fill
from metadef.dialects.metadef.ops.iota import iota as _iota
from metadef.dialects.metadef.ops.pad import pad as _pad
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.reduce import reduce as _reduce
from metadef.dialects.metadef.ops.reshape import reshape as _reshape
from metadef.dialects.metadef.ops.slice import slice as _slice
from metadef.dialects.metadef.ops.transpose import transpose as _transpose
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.symbolic import Dim, DimLike

from .call import Number, ScalarTensor, Tensor
from .dtypes import (
    bool_type,
    category,
    f32,
    i32,
    i64,
    integer_range,
    is_bool,
    is_float,
    is_integer,
    promote_elements,
    width,
)

__all__ = [
    "along",
    "as_element",
    "broadcast",
    "cast",
    "common",
    "concat",
    "contraction",
    "dim_value",
    "dims",
    "element",
    "fill",
    "index_dims",
    "iota",
    "is_one",
    "is_zero",
    "number",
    "pad",
    "pointwise",
    "rank",
    "reduce",
    "reshape",
    "select",
    "simplified",
    "slice_",
    "transpose",
    "unsqueeze",
]


def dims(x: ir.Value) -> tuple[Dim, ...]:
    return dims_of(x.type)


def rank(x: ir.Value) -> int:
    return int(ir.RankedTensorType(x.type).rank)


def element(x: ir.Value) -> ir.Type:
    return element_of(x.type)


def simplified(value: Any) -> Any:
    """Return a static Dim as an int, anything else as it is."""
    return value.value if isinstance(value, Dim) and value.is_static else value


def is_one(sizes: Sequence[Dim]) -> bool:
    """Answer whether every size is the literal 1."""
    return all(d.is_static and d.value == 1 for d in sizes)


def index_dims(axes: int | Sequence[int] | None, of_rank: int) -> list[int]:
    """Return torch's `dim` argument as sorted axes; None and [] are all of them."""
    if axes is None or axes == [] or of_rank == 0:
        return list(range(of_rank))
    listed = [axes] if isinstance(axes, int) else list(axes)
    return sorted(a % of_rank for a in listed)


def is_zero(size: Dim) -> bool:
    return size.is_static and size.value == 0


def fill(sizes: Sequence[DimLike], value: int | float | bool, of: ir.Type) -> ir.Value:
    """Fill with `value` as torch converts it: integers wrap around, bools are `value != 0`."""
    return _fill(sizes, _literal(value, of), of)


def _literal(value: int | float | bool, of: ir.Type) -> int | float | bool:
    if is_float(of):
        return float(value)
    if is_bool(of):
        return bool(value)
    low, _ = integer_range(of)
    return (int(value) - low) % (1 << width(of)) + low


def iota(
    sizes: Sequence[DimLike],
    dim: int,
    start: int | float = 0,
    step: int | float = 1,
    of: ir.Type | None = None,
) -> ir.Value:
    """Count along `dim`; of i64 unless `of` says otherwise."""
    return _iota(sizes, dim, start, step, of or i64())


def cast(x: ir.Value, to: ir.Type) -> ir.Value:
    """Cast as eager does: to bool by `!= 0`, floats to narrow integers through i32."""
    source = element(x)
    if source == to:
        return x
    if is_bool(to):
        return pointwise("ne", x, fill([], 0, source))
    if is_float(source) and is_integer(to) and width(to) < 32:
        x = pointwise("cast", x, element=i32())
    return pointwise("cast", x, element=to)


def number(value: Number, of: ir.Type) -> ir.Value:
    """Return a Python number as a rank-0 tensor of element type `of`."""
    if isinstance(value, Dim):
        return cast(dim_value(value), of) if not value.is_static else fill([], value.value, of)
    if isinstance(value, ScalarTensor):
        return cast(value.value, of)
    return fill([], value, of)


def as_element(x: Tensor, of: ir.Type) -> ir.Value:
    """Return an operand, tensor or number, as a tensor of element type `of`."""
    return cast(x, of) if isinstance(x, ir.Value) else number(x, of)


def common(*xs: Tensor) -> list[ir.Value]:
    """Return operands cast to the element type that torch promotes them to."""
    of = promoted(*xs)
    return [as_element(x, of) for x in xs]


def promoted(*xs: Tensor) -> ir.Type:
    """Return `torch.result_type`: a tensor outranks a rank-0 tensor, which outranks a number."""
    groups: list[ir.Type | None] = [None, None, None]
    for x in xs:
        if not isinstance(x, ir.Value):
            level, kind = 2, _number_element(x)
        else:
            level, kind = (0 if rank(x) else 1), element(x)
        held = groups[level]
        groups[level] = kind if held is None else promote_elements(held, kind)
    result: ir.Type | None = None
    for kind_or_none in groups:
        if kind_or_none is None:
            continue
        if result is None or category(kind_or_none) > category(result):
            result = kind_or_none
    assert result is not None, "promotion of no operands"
    return result


def _number_element(value: Number) -> ir.Type:
    if isinstance(value, bool):
        return bool_type()
    if isinstance(value, int | Dim):
        return i64()
    if isinstance(value, ScalarTensor):
        of = element(value.value)
        return f32() if is_float(of) else of
    return f32()


def reshape(x: ir.Value, sizes: Sequence[DimLike]) -> ir.Value:
    wanted = tuple(Dim.of(d) for d in sizes)
    return x if wanted == dims(x) else _reshape(x, wanted)


def broadcast(x: ir.Value, sizes: Sequence[DimLike]) -> ir.Value:
    wanted = tuple(Dim.of(d) for d in sizes)
    return x if wanted == dims(x) else _broadcast(x, wanted)


def transpose(x: ir.Value, perm: Sequence[int]) -> ir.Value:
    return x if list(perm) == list(range(len(perm))) else _transpose(x, perm)


def slice_(x: ir.Value, dim: int, start: DimLike, size: DimLike, step: int = 1) -> ir.Value:
    whole = Dim.of(start) == Dim.of(0) and Dim.of(size) == dims(x)[dim] and step == 1
    return x if whole else _slice(x, dim, start, size, step)


def select(x: ir.Value, dim: int, index: DimLike) -> ir.Value:
    """Return x at `index` of `dim`, which goes away."""
    sizes = dims(x)
    return reshape(slice_(x, dim, index, 1), [*sizes[:dim], *sizes[dim + 1 :]])


def concat(xs: Sequence[ir.Value], dim: int) -> ir.Value:
    return xs[0] if len(xs) == 1 else _concat(xs, dim)


def pad(
    x: ir.Value,
    low: Sequence[int],
    high: Sequence[int],
    mode: str = "constant",
    value: int | float | bool = 0,
) -> ir.Value:
    if not any(low) and not any(high):
        return x
    return _pad(x, low, high, mode, _literal(value, element(x)))


def reduce(fn: str, x: ir.Value, axes: Sequence[int], keepdim: bool = False) -> ir.Value:
    return _reduce(fn, x, axes, keepdim) if axes else x


def unsqueeze(x: ir.Value, dim: int) -> ir.Value:
    sizes: list[Any] = list(dims(x))
    sizes.insert(dim, Dim.of(1))
    return reshape(x, sizes)


def along(x: ir.Value, dim: int, of_rank: int) -> ir.Value:
    """Return a rank-1 x so that it broadcasts along `dim` of a tensor of rank `of_rank`."""
    return reshape(x, [*dims(x), *[1] * (of_rank - dim - 1)])

"""Algebraic identities on metadef ops, exact for every input: NaN, infinities and -0.0 included."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import choice, integer, integers, scalar, text
from metadef.dialects.metadef.literals import array_of
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.concat import ConcatOp, concat
from metadef.dialects.metadef.ops.conv import conv
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.slice import slice as slice_dim
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.shapes import ONE, broadcast_dims, shape_of
from metadef.dialects.metadef.windows import LAYOUTS, spatial_axes
from metadef.rewrite import Pattern, pattern
from metadef.symbolic import Dim

from ._buffers import owner_of
from ._permutations import compose, is_identity

#: fn -> (the operand's value that does nothing, whether it may stand on the left too)
_NEUTRAL = {
    "mul": (1, True),
    "div": (1, False),
    "sub": (0, False),
    "pow": (1, False),
    "and": (-1, True),
    "or": (0, True),
    "xor": (0, True),
}


def producer(value: ir.Value, name: str) -> Any:
    """Return the op `metadef.<name>` that makes `value`, or None."""
    owner = owner_of(value)
    return owner.opview if owner is not None and owner.name == f"metadef.{name}" else None


def splat_of(value: ir.Value) -> int | float | bool | None:
    """Return the number that every element of `value` is known to be, or None."""
    owner = owner_of(value)
    if owner is None:
        return None
    if owner.name == "metadef.fill":
        return scalar(owner, "value")
    if owner.name == "metadef.constant" and owner.attributes["value"].is_splat:
        array = array_of(owner.attributes["value"])
        number: int | float | bool = array.reshape(-1)[0].item() if array.size else 0
        return number
    if owner.name in ("metadef.broadcast", "metadef.reshape", "metadef.transpose"):
        return splat_of(owner.operands[0])
    return None


@pattern("metadef.pointwise")
def drop_neutral_operand(op: Any) -> ir.Value | None:
    """`x * 1`, `x / 1`, `x - 0`, `x ** 1`, `x + (-0.0)` -> `x`.

    `x + 0.0` is not one of them: it turns -0.0 into 0.0.
    """
    fn, result = text(op, "fn"), op.results[0]
    if fn == "identity":
        return _if_same_type(op.operands[0], result)
    floats = isinstance(shape_of(result).element, ir.FloatType)
    if fn == "add":
        neutral, both = (-0.0 if floats else 0), True
    elif fn in _NEUTRAL:
        neutral, both = _NEUTRAL[fn]
    else:
        return None
    lhs, rhs = op.operands
    if _is(splat_of(rhs), neutral):
        return _if_same_type(lhs, result)
    if both and _is(splat_of(lhs), neutral):
        return _if_same_type(rhs, result)
    return None


@pattern("metadef.pointwise")
def fold_cast(op: Any) -> ir.Value | None:
    """`cast(x)` to x's own type -> `x`; a cast there and back through a wider float -> `x`."""
    if text(op, "fn") != "cast":
        return None
    x, result = op.operands[0], op.results[0]
    if x.type == result.type:
        return x
    inner = producer(x, "pointwise")
    if inner is None or text(inner, "fn") != "cast":
        return None
    source = inner.operands[0]
    if source.type == result.type and _widens(shape_of(source).element, shape_of(x).element):
        return source
    return None


@pattern("metadef.pointwise")
def fold_select(op: Any) -> ir.Value | None:
    """`select(true, a, b)` -> `a`, `select(false, a, b)` -> `b`, `select(c, a, a)` -> `a`."""
    if text(op, "fn") != "select":
        return None
    condition, a, b = op.operands
    known = splat_of(condition)
    if known is None and a != b:
        return None
    return _if_same_type(b if known is not None and not known else a, op.results[0])


@pattern("metadef.pointwise")
def read_broadcast_operands_directly(op: Any) -> ir.Value | None:
    """`f(broadcast(x), y)` -> `f(x, y)` when y has the result's dims: f broadcasts by itself."""
    operands = list(op.operands)
    dims = shape_of(op.results[0]).dims
    for i, value in enumerate(operands):
        stretched = producer(value, "broadcast")
        if stretched is None:
            continue
        others = operands[:i] + [stretched.operands[0]] + operands[i + 1 :]
        if broadcast_dims(*[shape_of(v).dims for v in others]) == dims:
            operands = others
    if operands == list(op.operands):
        return None
    return pointwise(text(op, "fn"), *operands, element=shape_of(op.results[0]).element)


@pattern("metadef.transpose")
def fold_transpose(op: Any) -> ir.Value | None:
    """Compose transposes; drop the identity; one that moves only dims of 1 -> `reshape`."""
    perm, x = integers(op, "perm"), op.operands[0]
    if is_identity(perm):
        return x
    inner = producer(x, "transpose")
    if inner is not None:
        return transpose(inner.operands[0], compose(integers(inner, "perm"), perm))
    dims = shape_of(x).dims
    moved = [p for p in perm if dims[p] != ONE]
    if moved == sorted(moved):
        return reshape(x, [dims[p] for p in perm])
    return _spread_splat(op)


@pattern("metadef.reshape")
def fold_reshape(op: Any) -> ir.Value | None:
    """Drop a reshape to the same type; a reshape of a reshape reads its source."""
    x, result = op.operands[0], op.results[0]
    if x.type == result.type:
        return x
    inner = producer(x, "reshape")
    if inner is not None:
        return reshape(inner.operands[0], shape_of(result).dims)
    return _spread_splat(op)


@pattern("metadef.broadcast")
def fold_broadcast(op: Any) -> ir.Value | None:
    """Drop a broadcast to the same type; one that only adds dims of 1 -> `reshape`."""
    x, result = op.operands[0], op.results[0]
    if x.type == result.type:
        return x
    inner = producer(x, "broadcast")
    if inner is not None:
        return broadcast(inner.operands[0], shape_of(result).dims)
    dims = shape_of(result).dims
    if dims[len(dims) - shape_of(x).rank :] == shape_of(x).dims and all(
        d == ONE for d in dims[: len(dims) - shape_of(x).rank]
    ):
        return reshape(x, dims)
    return _spread_splat(op)


@pattern("metadef.slice")
def fold_slice(op: Any) -> ir.Value | None:
    """Drop a slice of everything; compose slices of one dim; read a part of a concat directly."""
    x, result, dim = op.operands[0], op.results[0], integer(op, "dim")
    start, step = Dim.of(text(op, "start")), integer(op, "step")
    if x.type == result.type and start == Dim.of(0) and step == 1:
        return x
    size = shape_of(result).dims[dim]
    inner = producer(x, "slice")
    if inner is not None and integer(inner, "dim") == dim:
        inner_step = integer(inner, "step")
        first = Dim.of(text(inner, "start")) + start * inner_step
        return slice_dim(inner.operands[0], dim, first, size, step * inner_step)
    joined = producer(x, "concat")
    if joined is not None and integer(joined, "dim") == dim and step == 1:
        offset = Dim.of(0)
        for part in joined.operands:
            extent = shape_of(part).dims[dim]
            if offset == start and extent == size:
                return _if_same_type(part, result)
            offset = offset + extent
    return _spread_splat(op)


@pattern("metadef.concat")
def fold_concat(op: Any) -> ir.Value | None:
    """Drop a concat of one, and its empty operands; join a concat of concats."""
    dim = integer(op, "dim")
    parts: list[ir.Value] = []
    for value in op.operands:
        inner = producer(value, "concat")
        if inner is not None and integer(inner, "dim") == dim:
            parts += inner.operands
        elif shape_of(value).dims[dim] != Dim.of(0):
            parts.append(value)
    if len(parts) == 1:
        return _if_same_type(parts[0], op.results[0])
    # Past the number of groups the builder makes a concat of concats.
    if not parts or parts == list(op.operands) or len(parts) > ConcatOp.operand_groups:
        return None
    return concat(parts, dim)


@pattern("metadef.pad")
def drop_empty_pad(op: Any) -> ir.Value | None:
    """A pad by nothing -> x."""
    if any(integers(op, "low")) or any(integers(op, "high")):
        return None
    return _if_same_type(op.operands[0], op.results[0])


@pattern("metadef.conv")
def fold_pad_into_conv(op: Any) -> ir.Value | None:
    """conv(pad(x)) -> conv(x) with more padding, for a pad of spatial dims by zeros."""
    inner = producer(op.operands[0], "pad")
    if inner is None or text(inner, "mode") != "constant" or scalar(inner, "value") != 0:
        return None
    low, high = integers(inner, "low"), integers(inner, "high")
    layout = choice(op, "layout", LAYOUTS)
    axes = spatial_axes(layout, len(low))
    if any(low[i] or high[i] for i in range(len(low)) if i not in axes) or min(*low, *high) < 0:
        return None
    padding = integers(op, "padding")
    for i, axis in enumerate(axes):
        padding[2 * i] += low[axis]
        padding[2 * i + 1] += high[axis]
    return conv(
        inner.operands[0],
        *list(op.operands)[1:],
        strides=integers(op, "strides"),
        padding=padding,
        dilations=integers(op, "dilations"),
        groups=integer(op, "groups"),
        layout=layout,
    )


@pattern("metadef.reduce")
def drop_reduce_of_ones(op: Any) -> ir.Value | None:
    """A reduction over dims of 1 alone -> `reshape`."""
    x, dims = op.operands[0], integers(op, "dims")
    if text(op, "fn").startswith("arg") or any(shape_of(x).dims[d] != ONE for d in dims):
        return None
    return reshape(x, shape_of(op.results[0]).dims)


IDENTITIES: tuple[Pattern, ...] = (
    drop_neutral_operand,
    fold_cast,
    fold_select,
    read_broadcast_operands_directly,
    fold_transpose,
    fold_reshape,
    fold_broadcast,
    fold_slice,
    fold_concat,
    drop_empty_pad,
    fold_pad_into_conv,
    drop_reduce_of_ones,
)


def _spread_splat(op: Any) -> ir.Value | None:
    """A view of a tensor of one value is a fill."""
    source = producer(op.operands[0], "fill")
    if source is None:
        return None
    result = shape_of(op.results[0])
    return fill(result.dims, scalar(source, "value"), result.element)


def _if_same_type(value: ir.Value, result: ir.Value) -> ir.Value | None:
    return value if value.type == result.type else None


def _is(known: int | float | bool | None, wanted: int | float) -> bool:
    """Return whether a known splat is `wanted`, telling -0.0 from 0.0."""
    if known is None or known != wanted:
        return False
    return str(float(known)) == str(float(wanted)) or float(wanted) != 0.0 or isinstance(known, int)


def _widens(narrow: ir.Type, wide: ir.Type) -> bool:
    """Return whether every value of float type `narrow` is one of `wide`."""
    order = {"bf16": 0, "f16": 0, "f32": 1, "f64": 2}
    a, b = order.get(str(narrow)), order.get(str(wide))
    return a is not None and b is not None and a < b

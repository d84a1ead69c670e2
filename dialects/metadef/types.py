"""Tensor types with symbolic dims: a dim is static, or an expression in the type's encoding."""

from __future__ import annotations

from collections.abc import Sequence

from metadef import ir
from metadef.symbolic import Dim, DimLike

from .dialect import DimsAttr


def tensor_type(dims: Sequence[DimLike], element: ir.Type) -> ir.RankedTensorType:
    """Return `tensor<dims x element>`, with a `#metadef.dims` encoding if any dim is symbolic."""
    exprs = [Dim.of(d) for d in dims]
    if all(d.is_static for d in exprs):
        return ir.RankedTensorType.get([d.value for d in exprs], element, loc=ir.Location.unknown())
    dynamic = ir.ShapedType.get_dynamic_size()
    i64 = ir.IntegerType.get_signless(64)
    attrs = [
        ir.IntegerAttr.get(i64, d.value) if d.is_static else ir.StringAttr.get(str(d))
        for d in exprs
    ]
    return ir.RankedTensorType.get(
        [d.value if d.is_static else dynamic for d in exprs],
        element,
        DimsAttr.get(ir.ArrayAttr.get(attrs)),
        loc=ir.Location.unknown(),
    )


def dims_of(type_: ir.Type) -> tuple[Dim, ...]:
    """Return the dims of a tensor type; a `?` without an encoding is an error of the producer."""
    shaped = ir.RankedTensorType(type_)
    encoding = shaped.encoding
    if encoding is None:
        assert shaped.has_static_shape, f"{type_} has a dynamic dim but no #metadef.dims"
        return tuple(Dim.of(d) for d in shaped.shape)
    assert isinstance(encoding, DimsAttr), f"{type_} has an encoding that is not #metadef.dims"
    return tuple(Dim.of(a.value) for a in ir.ArrayAttr(encoding.dims))


def is_well_encoded(type_: ir.RankedTensorType) -> bool:
    """Return whether a tensor type has no encoding, or a `#metadef.dims` that fits its dims."""
    encoding = type_.encoding
    if encoding is None:
        return True
    if not isinstance(encoding, DimsAttr):
        return False
    entries = list(ir.ArrayAttr(encoding.dims))
    return len(entries) == type_.rank and all(
        isinstance(a, ir.StringAttr) if n == ir.ShapedType.get_dynamic_size() else _is(a, n)
        for a, n in zip(entries, type_.shape, strict=True)
    )


def _is(attribute: ir.Attribute, value: int) -> bool:
    return isinstance(attribute, ir.IntegerAttr) and attribute.value == value


def element_of(type_: ir.Type) -> ir.Type:
    """Return the element type of a tensor type."""
    return ir.ShapedType(type_).element_type

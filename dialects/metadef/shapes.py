"""What shape functions speak: `Shaped` (dims and element type), broadcasting, comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from metadef import ir
from metadef.diagnostics import ShapeInferenceError
from metadef.symbolic import Dim, DimLike, same

from .types import dims_of, element_of, tensor_type

ONE = Dim.of(1)


class Shaped(NamedTuple):
    """Dims and element type of a tensor: what a shape function takes and returns."""

    dims: tuple[Dim, ...]
    element: ir.Type

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def type(self) -> ir.RankedTensorType:
        return tensor_type(self.dims, self.element)

    def with_dims(self, dims: Sequence[DimLike]) -> Shaped:
        return shaped(dims, self.element)

    def with_element(self, element: ir.Type) -> Shaped:
        return Shaped(self.dims, element)

    def __str__(self) -> str:
        return "x".join([f"[{', '.join(map(str, self.dims))}]", str(self.element)])


def shaped(dims: Sequence[DimLike], element: ir.Type) -> Shaped:
    """Return the shape with dims given as ints, texts or Dims."""
    return Shaped(tuple([Dim.of(d) for d in dims]), element)


def shape_of(value: ir.Value) -> Shaped:
    """Return dims and element type of a tensor value.

    Raises:
        ShapeInferenceError: not a ranked tensor, or a `?` without `#metadef.dims`.
    """
    return shape_of_type(value.type)


def shape_of_type(type_: ir.Type) -> Shaped:
    """Return dims and element type of a tensor type; raises as `shape_of` does."""
    if not isinstance(type_, ir.RankedTensorType):
        raise ShapeInferenceError(f"expected a ranked tensor, got {type_}")
    if not type_.has_static_shape and type_.encoding is None:
        raise ShapeInferenceError(f"a dynamic dim needs a #metadef.dims encoding, got {type_}")
    dims = dims_of(type_)
    return Shaped(dims, element_of(type_))


def axis(dim: int, rank: int) -> int:
    """Return `dim` counted from the front; what is out of range stays so, for the op to report."""
    return dim + rank if dim < 0 else dim


def broadcast_dims(*shapes: Sequence[Dim]) -> tuple[Dim, ...]:
    """Return the dims that numpy's broadcasting gives; only a literal 1 stretches.

    Dims that may or may not be equal are taken to be equal at run time; the static one is kept.

    Raises:
        ShapeInferenceError: two dims differ for certain and neither is 1.
    """
    rank = max(map(len, shapes), default=0)
    result = [ONE] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for i, dim in enumerate(shape):
            result[offset + i] = broadcast_dim(result[offset + i], dim)
    return tuple(result)


def broadcast_dim(a: Dim, b: Dim) -> Dim:
    """Return the dim that `a` and `b` broadcast to; raises as `broadcast_dims` does."""
    if a == b or b == ONE:
        return a
    if a == ONE:
        return b
    return merge_dims(a, b)


def merge_dims(a: Dim, b: Dim) -> Dim:
    """Return the better known of two dims that must be equal.

    Raises:
        ShapeInferenceError: they differ for certain.
    """
    if same(a, b) is False:
        raise ShapeInferenceError(f"dims must agree, got {a} and {b}")
    return b if b.is_static else a


def disagreement(declared: Shaped, inferred: Shaped) -> str | None:
    """Return how a declared result contradicts the inferred one, or None when it may be right."""
    if declared == inferred:
        return None
    if declared.element != inferred.element:
        return f"element type {declared.element} where {inferred.element} follows"
    if declared.rank != inferred.rank:
        return f"{declared} where {inferred} follows"
    for i, (a, b) in enumerate(zip(declared.dims, inferred.dims, strict=True)):
        if same(a, b) is False:
            return f"dim {i} = {a} where {b} follows"
    return None


def refine(declared: Shaped, inferred: Shaped) -> Shaped:
    """Return the better known dims of two shapes that do not disagree, else the inferred ones."""
    dims = [
        a if a.is_static and not b.is_static else b
        for a, b in zip(declared.dims, inferred.dims, strict=True)
    ]
    return Shaped(tuple(dims), inferred.element)

"""`metadef.index_put`: put slices at positions that several index tensors name."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.diagnostics import ShapeInferenceError
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import ONE, Shaped, axis, broadcast_dims, merge_dims, shape_of
from metadef.symbolic import Dim

C1 = constraint("index_put-C1", "dims are increasing axes of x, one for each index tensor")
C2 = constraint("index_put-C2", "indices are integers that broadcast together")
C3 = constraint("index_put-C3", "updates have x's element type and broadcast to the indexed shape")


def indexed_dims(x: Shaped, indices: Sequence[Shaped], dims: Sequence[int]) -> tuple[Dim, ...]:
    """Return the shape of `x[.., indices.., ..]` by numpy's rule for advanced indexing.

    The broadcast dims of the indices stand where the indexed dims were if those are next to each
    other, and come first otherwise.
    """
    try:
        together = broadcast_dims(*[i.dims for i in indices])
    except ShapeInferenceError:
        raise C2.broken(", ".join(map(str, indices))) from None
    adjacent = list(dims) == list(range(dims[0], dims[0] + len(dims)))
    at = dims[0] if adjacent else 0
    rest = [d for i, d in enumerate(x.dims) if i not in dims]
    return (*rest[:at], *together, *rest[at:])


def infer(x: Shaped, updates: Shaped, indices: Sequence[Shaped], dims: Sequence[int]) -> Shaped:
    """Return x's own shape."""
    if (
        not dims
        or len(dims) != len(indices)
        or sorted(set(dims)) != list(dims)
        or not 0 <= dims[0] <= dims[-1] < x.rank
    ):
        raise C1.broken(f"dims {list(dims)} for {len(indices)} index tensors and {x}")
    for index in indices:
        C2.check(kind_of(index.element) == "int", str(index.element))
    target = indexed_dims(x, indices, dims)
    offset = len(target) - updates.rank
    C3.check(offset >= 0 and updates.element == x.element, f"{updates} for {x.with_dims(target)}")
    for i, d in enumerate(updates.dims):
        try:
            if d != ONE:
                merge_dims(target[offset + i], d)
        except ShapeInferenceError:
            raise C3.broken(f"{updates} for {x.with_dims(target)}") from None
    return x


class IndexPutOp(MetadefOp, name="index_put", traits=[ir.ext.Pure]):
    """x, but `result[.., indices.., ..] = updates`, or `+=` with `accumulate`.

    Index tensor j addresses x's dim `dims[j]`; they broadcast together, and updates
    broadcast to the indexed shape (`indexed_dims`). A negative index counts from the end; without
    `accumulate` the last of equal positions stays.
    """

    x: Operand
    updates: Operand
    indices: Sequence[Operand]
    result: Result
    accumulate: Any
    dims: Any

    constraints = (C1, C2, C3)
    operand_groups = 8

    def infer_results(self) -> list[Shaped]:
        boolean(self, "accumulate")
        indices = [shape_of(i) for i in self.indices]
        return [infer(shape_of(self.x), shape_of(self.updates), indices, integers(self, "dims"))]


def index_put(
    x: ir.Value,
    updates: ir.Value,
    indices: Sequence[ir.Value],
    dims: Sequence[int],
    accumulate: bool = False,
) -> ir.Value:
    """Build x with `updates` put where `indices` of `dims` say."""
    shape = shape_of(x)
    dims = [axis(d, shape.rank) for d in dims]
    result = infer(shape, shape_of(updates), [shape_of(i) for i in indices], dims)
    return build(IndexPutOp, [x, updates, *indices], [result], accumulate=accumulate, dims=dims)

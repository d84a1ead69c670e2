"""Sums, means and maxima of bags of embedding rows."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.scatter import scatter
from metadef.dialects.metadef.ops.take import take
from metadef.symbolic import Dim

from . import build
from .build import cast, dims, pointwise, reduce
from .call import Call
from .dtypes import bool_type, i64, opmath
from .registry import NotModelled, converts

_SUM, _MEAN, _MAX = range(3)


@converts("aten.embedding_bag.padding_idx", "aten._embedding_bag")
@converts("aten._embedding_bag_forward_only")
def embedding_bag(
    call: Call,
    weight: ir.Value,
    indices: ir.Value,
    offsets: ir.Value,
    scale_by_frequency: bool,
    mode: int,
    sparse: bool,
    sample_weights: ir.Value | None,
    include_last: bool,
    padding: int | None,
) -> tuple[Any, ...]:
    """Reduce the rows of each bag; bag b is indices[offsets[b] : offsets[b + 1]].

    Returns the bags [B, D], then eager's book-keeping: the bag of each index, the sizes of bags,
    and for maxima the rows they came from.
    """
    if mode == _MAX and call.used(3):
        raise NotModelled
    bags = dims(offsets)[0] - (1 if include_last else 0)
    starts = build.slice_(offsets, 0, 0, bags)
    bag_of = _bag_of_each(indices, starts)
    wide = opmath(call.element)
    rows = cast(take(weight, indices, 0), wide)
    if sample_weights is not None:
        rows = pointwise("mul", rows, build.along(cast(sample_weights, wide), 0, 2))
    size = [bags, dims(weight)[1]]
    where = build.broadcast(build.along(bag_of, 0, 2), dims(rows))
    kept = build.fill(dims(indices), True, bool_type())
    skipped = _skipped_row(call, weight, padding)
    if skipped is not None:
        kept = pointwise("ne", cast(indices, i64()), build.number(skipped, i64()))
        neutral = build.number(float("-inf") if mode == _MAX else 0, wide)
        rows = pointwise("select", build.along(kept, 0, 2), rows, neutral)
    ones = cast(kept, i64())
    counts = scatter(build.fill([bags], 0, i64()), bag_of, ones, 0, "add")
    if mode == _MAX:
        lowest = build.fill(size, float("-inf"), wide)
        value = scatter(lowest, where, rows, 0, "max")
        empty = build.along(pointwise("eq", counts, build.number(0, i64())), 0, 2)
        value = pointwise("select", empty, build.number(0, wide), value)
    else:
        value = scatter(build.fill(size, 0, wide), where, rows, 0, "add")
    if mode == _MEAN:
        divisor = pointwise("maximum", counts, build.number(1, i64()))
        value = pointwise("div", value, build.along(cast(divisor, wide), 0, 2))
    return (cast(value, call.element), *_book_keeping(call, bag_of, counts))


def _skipped_row(call: Call, weight: ir.Value, padding: int | None) -> int | Dim | None:
    """Return the row that no bag counts: the public op counts it from the end when negative, the
    private ones say by a negative number that there is none."""
    if padding is None or padding >= 0:
        return padding
    return dims(weight)[0] + padding if call.name.endswith(".padding_idx") else None


def _bag_of_each(indices: ir.Value, starts: ir.Value) -> ir.Value:
    """Return the bag of each index: the number of bags that start at or before it, less one."""
    position = build.unsqueeze(build.iota(dims(indices), 0), 1)
    started = pointwise("le", cast(starts, i64()), position)
    count = reduce("sum", cast(started, i64()), [1])
    return pointwise("sub", count, build.number(1, i64()))


def _book_keeping(call: Call, bag_of: ir.Value, counts: ir.Value) -> list[ir.Value | None]:
    """Return the results after the first in the sizes torch gives them; unfilled ones are 0."""
    results: list[ir.Value | None] = []
    for i, known in ((1, bag_of), (2, counts), (3, None)):
        kind = call.results[i]
        if not call.used(i) or kind is None:
            results.append(None)
        elif known is not None and kind.dims == dims(known):
            results.append(cast(known, kind.element))
        elif kind.dims is not None and (i == 3 or kind.dims == (Dim.of(0),)):
            results.append(build.fill(kind.dims, 0, kind.element))
        else:
            call.fail(f"result {i} has dims {kind.dims}, which metadef does not know")
    return results

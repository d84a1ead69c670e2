"""Who reads a part of a tensor in place, through a slice, and who needs it dense."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import integer, text
from metadef.dialects.metadef.ops.slice import slice as slice_dim
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.rewrite import pattern
from metadef.symbolic import Dim

from ._buffers import RESHAPE, owner_of
from ._fusion import ELEMENTWISE, REUSE_ANCHORS, ROW_ANCHORS, VIEWS
from ._identities import producer
from ._reshapes import groups_of, reshaped

#: ops whose kernels take a slice that nobody else reads among their own, by operand; None: any
_IN_PLACE: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(ELEMENTWISE | REUSE_ANCHORS | {"metadef.concat"}),
    **dict.fromkeys(ROW_ANCHORS, (0,)),
}


def reads_in_place(use: ir.OpOperand) -> bool:
    """Tell whether an op reads a slice of a tensor where the tensor lies."""
    owner = use.owner.operation
    if owner.name not in _IN_PLACE:
        return False
    positions = _IN_PLACE[owner.name]
    return positions is None or use.operand_number in positions


def splits_last_dim(op: ir.Operation) -> int | None:
    """Return in runs of how many elements a reshape cuts its source's last dim: 1 where it keeps
    it, None where it merges it."""
    before, after = shape_of(op.operands[0]).dims, shape_of(op.results[0]).dims
    found = _split(before, after, len(before) - 1)
    return None if found is None else found[1]


@pattern("metadef.reshape")
def sink_slice_below_reshape(op: Any) -> ir.Value | None:
    """reshape(slice(x)) -> slice(reshape(x)), for a part of a dim that is kept or split.

    A reshape renames a dense buffer, which the slice of a view is not: x is to be stored anyway.
    """
    inner = producer(op.operands[0], "slice")
    if inner is None or integer(inner, "step") != 1:
        return None
    x, dim, start = inner.operands[0], integer(inner, "dim"), Dim.of(text(inner, "start"))
    maker = owner_of(x)
    if (maker is not None and maker.name in VIEWS) or not start.is_static:
        return None
    after = list(shape_of(op.results[0]).dims)
    found = _split(shape_of(inner.results[0]).dims, after, dim)
    whole = shape_of(x).dims[dim]
    if found is None or not whole.is_static:
        return None
    at, run = found
    if start.value % run or whole.value % run:
        return None
    size = after[at]
    after[at] = Dim.of(whole.value // run)
    return slice_dim(reshaped(x, after), at, start.value // run, size)


def _split(before: Sequence[Dim], after: Sequence[Dim], dim: int) -> tuple[int, int] | None:
    """Return where a reshape puts a dim that it keeps or splits, and the elements from one index
    there to the next."""
    groups = groups_of(before, after)
    if groups is None or before[dim] == ONE:
        return None
    merged, made = next(group for group in groups if dim in group[0])
    if any(before[d] != ONE for d in merged if d != dim):
        return None
    at = next(i for i in made if after[i] != ONE)
    run = 1
    for i in range(at + 1, made.stop):
        if not after[i].is_static:
            return None
        run *= after[i].value
    return at, run


def give_each_reader_a_slice(source: ir.Value) -> None:
    """Copy the slices of `source`, also under other dims, for each op that reads them in place: a
    kernel takes those of its own."""
    for use in list(source.uses):
        op = use.owner.operation
        if op.name == RESHAPE:
            give_each_reader_a_slice(op.results[0])
        elif op.name == "metadef.slice":
            uses = list(op.results[0].uses)
            if all(reads_in_place(u) for u in uses):
                for other in uses[1:]:
                    copy = op.clone(ir.InsertionPoint(op))
                    other.owner.operation.operands[other.operand_number] = copy.results[0]

"""Padding that nobody makes: a window's taps beside its input are left out of the sum.

What a padded copy would hold there changes nothing: 0 times a weight (a finite one) in a sum, -inf
in a maximum.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metadef import ir

from .access import Access, linear_terms
from .grouping import fill_value
from .index_math import Index, add, floordiv, maximum, minimum, mul, sub
from .schedule import GREATEST, combiners
from .shared_buffers import root
from .stage import Inside, Stage

Fits = Callable[[Stage, Stage], bool]


def turns_inside(w: Inside, output: Index, base: Index, extent: Index) -> tuple[Index, Index]:
    """Return first and number of the taps, of those at `base`, that fall inside at `output`."""
    position = add(mul(output, w.stride), w.start)
    first = floordiv(sub(w.dilation - 1, position), w.dilation)
    stop = floordiv(sub(w.extent + w.dilation - 1, position), w.dilation)
    first = maximum(base, first)
    stop = minimum(add(base, extent), stop)
    return first, maximum(sub(stop, first), 0)


def rows_inside(w: Inside, output: int, rows: int, tap: int) -> tuple[int, int]:
    """Return first and number of the outputs from `output` on whose tap number `tap` is inside."""
    position = output * w.stride + w.start + tap * w.dilation
    first = min(max(-(position // w.stride), 0), rows)
    stop = min(max(-((position - w.extent) // w.stride), first), rows)
    return first, stop - first


def whole_outputs(w: Inside, stage: Stage) -> tuple[int, int]:
    """Return first and end of the outputs of which all taps are inside."""
    taps = stage.extents[w.tap]
    assert isinstance(taps, int), "a window of known size"
    reach = w.start + (taps - 1) * w.dilation
    return -(w.start // w.stride), (w.extent - 1 - reach) // w.stride + 1


def is_whole(w: Inside, output: Index, rows: int, stage: Stage) -> bool:
    """Tell whether all taps of the outputs from `output` on are inside.

    Where that is not known when the code is built, whoever builds it has seen to it.
    """
    first, end = whole_outputs(w, stage)
    return not isinstance(output, int) or (first <= output and output + rows <= end)


def edge_taps(w: Inside, bounds: list[tuple[Index, Index]]) -> range | None:
    """Return the taps that there are turns for, or None where that is not known."""
    base, extent = bounds[w.tap]
    known = isinstance(base, int) and isinstance(extent, int)
    return range(base, base + extent) if known else None


def merge_padding(stages: list[Stage], fits: Fits) -> list[Stage]:
    """Let each reduction over windows of a padded copy read what was copied, within its bounds.

    `fits` tells whether the second stage, which is to take the first one's place, is as good.
    """
    kept = list(stages)
    for stage in stages:
        for k, x in enumerate(stage.inputs):
            if not isinstance(x, Access) or not _is_plain(stage):
                continue
            padded = _padded(kept, stage, k)
            if padded is None:
                continue
            fill, copy = padded
            merged = _without_padding(stage, k, fill, copy)
            if merged is None or not fits(stage, merged):
                continue
            kept[kept.index(stage)] = merged
            kept.remove(fill)
            kept.remove(copy)
            break
    return kept


def _is_plain(stage: Stage) -> bool:
    return bool(stage.reduction_dims) and len(stage.outputs) == 1 and stage.accumulates(0)


def _padded(stages: list[Stage], reader: Stage, k: int) -> tuple[Stage, Stage] | None:
    """Return the fill and the copy that make input `k`, which nobody else touches."""
    buffer = reader.op.operands[k]
    owner = buffer.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "memref.alloc":
        return None
    writers = [s for s in stages if any(root(b) == buffer for b in s.writes)]
    readers = [s for s in stages if any(root(b) == buffer for b in s.reads)]
    if len(writers) != 2 or readers != [reader] or reader.reads.count(buffer) != 1:
        return None
    fill, copy = writers
    if fill.writes != [buffer] or fill_value(fill) is None or not _is_copy(copy):
        return None
    between = stages[stages.index(copy) : stages.index(reader)]
    source = root(copy.reads[0])
    return None if any(root(b) == source for s in between for b in s.writes) else (fill, copy)


def _is_copy(stage: Stage) -> bool:
    ops = list(stage.body.operations)
    return (
        len(ops) == 1
        and len(stage.inputs) == 1
        and isinstance(stage.inputs[0], Access)
        and not stage.inputs[0].nonlinear
        and ops[0].operation.operands[0] == stage.body.arguments[0]
    )


def _without_padding(stage: Stage, k: int, fill: Stage, copy: Stage) -> Stage | None:
    """Return the reduction that reads the copy's source."""
    number = fill_value(fill)
    assert number is not None
    view = copy.writes[0].owner
    if isinstance(view, ir.Block) or view.operation.name != "memref.subview":
        return None
    lows = list(ir.DenseI64ArrayAttr(view.operation.attributes["static_offsets"]))
    sizes = list(ir.DenseI64ArrayAttr(view.operation.attributes["static_sizes"]))
    steps = list(ir.DenseI64ArrayAttr(view.operation.attributes["static_strides"]))
    dynamic = ir.ShapedType.get_dynamic_size()
    whole = ir.MemRefType(stage.op.operands[k].type).shape
    axes = _copied_axes(copy)
    if not _changes_nothing(stage, k, number) or axes is None or any(s != 1 for s in steps):
        return None
    if ir.MemRefType(copy.writes[0].type).rank != len(whole):
        return None
    source = copy.inputs[0]
    assert isinstance(source, Access)
    map_ = ir.AffineMapAttr(ir.ArrayAttr(stage.op.attributes["indexing_maps"])[k]).value
    strides: list[Index] = [0] * len(stage.extents)
    offset: Index = source.offset
    inside = list(stage.inside)
    for axis, expr in enumerate(map_.results):
        terms = linear_terms(expr)
        if terms is None:
            return None
        step = source.strides[axes[axis]]
        for d, coefficient in terms[0].items():
            strides[d] = add(strides[d], mul(step, coefficient))
        offset = add(offset, mul(step, terms[1] - lows[axis]))
        if lows[axis] == 0 and sizes[axis] == whole[axis]:
            continue
        bounds = _bounds(stage, terms, lows[axis], sizes[axis])
        if bounds is None or dynamic in (lows[axis], sizes[axis]):
            return None
        inside.append(bounds)
    x = Access(source.buffer, source.element, offset, tuple(strides))
    buffer = stage.op.operands[k]
    return replace(
        stage,
        inputs=[x if i == k else y for i, y in enumerate(stage.inputs)],
        reads=[copy.reads[0] if b == buffer else b for b in stage.reads],
        inside=tuple(inside),
    )


def _bounds(
    stage: Stage, terms: tuple[dict[int, int], int], low: int, extent: int
) -> Inside | None:
    """Return the bounds of a position made of one parallel dim and one tap."""
    outputs = [d for d in terms[0] if not stage.reduction[d]]
    taps = [d for d in terms[0] if stage.reduction[d]]
    if len(outputs) != 1 or len(taps) != 1 or min(terms[0].values()) < 1:
        return None
    if not isinstance(stage.extents[taps[0]], int):
        return None
    if any(w.output == outputs[0] or w.tap == taps[0] for w in stage.inside):
        return None
    stride, dilation = terms[0][outputs[0]], terms[0][taps[0]]
    return Inside(outputs[0], taps[0], stride, dilation, terms[1] - low, extent)


def _copied_axes(copy: Stage) -> list[int] | None:
    """Return the loop dim that walks each axis of what a copy writes."""
    maps = ir.ArrayAttr(copy.op.attributes["indexing_maps"])
    results = ir.AffineMapAttr(maps[len(maps) - 1]).value.results
    if not all(isinstance(e, ir.AffineDimExpr) for e in results):
        return None
    axes = [ir.AffineDimExpr(e).position for e in results]
    return axes if len(set(axes)) == len(axes) else None


def _changes_nothing(stage: Stage, k: int, number: ir.Value) -> bool:
    """Tell whether the reduction stays as it is where input `k` is `number`."""
    (fold,) = combiners(stage)
    constant = _constant(number)
    if fold is None or fold.op == GREATEST or constant is None:
        return False
    folding = stage.body.operations[len(stage.body.operations) - 1].operation.operands[0].owner
    running = stage.body.arguments[len(stage.inputs)]
    (added,) = [v for v in folding.operation.operands if v != running]
    return _folded(added, stage.body.arguments[k], constant) == fold.identity


def _folded(v: ir.Value, argument: ir.Value, constant: float | int) -> float | int | None:
    """Return the value of a scalar expression where `argument` is `constant`, if that decides."""
    if v == argument:
        return constant
    if isinstance(v, ir.BlockArgument):
        return None
    op = v.owner.operation
    parts = [_folded(x, argument, constant) for x in op.operands]
    if op.name in ("arith.extf", "arith.truncf", "arith.extsi"):
        return parts[0]
    return 0 if op.name in ("arith.mulf", "arith.muli") and 0 in parts else None


def _constant(v: ir.Value) -> float | int | None:
    if isinstance(v, ir.BlockArgument) or v.owner.operation.name != "arith.constant":
        return None
    attribute = v.owner.operation.attributes["value"]
    kinds: Sequence[type] = (ir.FloatAttr, ir.IntegerAttr)
    return next((kind(attribute).value for kind in kinds if isinstance(attribute, kind)), None)

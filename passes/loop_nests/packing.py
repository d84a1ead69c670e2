"""Pack an operand of a product in panels when it is made at run time and badly laid out.

Weights are packed once, in the graph (`pack-weights`). What is left are products of two computed
tensors: keys in attention, `torch.matmul(a, b)`. Copying such an operand costs one pass over it and
pays when every element is then read for many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from metadef import ir

from .access import Access, FlatBuffer
from .index_math import Index, ceildiv, value
from .schedule import Target
from .stage import Stage, parse_stage

# Rows for which copying pays: when lanes would be gathered; when steps of the reduction are far
# apart or near but many; and when the last cache level holds an operand of far or of deep steps.
# Deep and near ones are read in chunks, all panels of a chunk from the same pages.
_ROWS_IF_GATHERED = 4
_ROWS_IF_STRIDED = 48
_ROWS_IF_CACHED = 32
_ROWS_IF_DEEP = 96
# A row stride from which each step of the reduction touches another page.
_FAR_BYTES = 2048


def pack_operand(
    op: ir.OpView, flat: Callable[[ir.Value], FlatBuffer], target: Target
) -> ir.OpView | None:
    """Rewrite a product in place to read one input from panels; return the op that fills them."""
    stage = parse_stage(op, flat)
    chosen = _operand_to_pack(stage, target)
    if chosen is None:
        return None
    k, lanes = chosen
    source = op.operation.operands[k]
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    dims = [ir.AffineDimExpr(e).position for e in maps[k].results]
    type_ = ir.MemRefType(source.type)
    width = 2 * target.vector_bits // _bits(type_.element_type)
    order = _panel_order(stage, dims, lanes)
    panels = _allocate(stage, order, lanes, width, type_.element_type)
    copy = _copy(source, panels, dims, order, lanes, width, stage)
    op.operation.operands[k] = panels
    maps[k] = _panel_map(len(stage.extents), order, lanes, width)
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in maps])
    return copy


def _operand_to_pack(stage: Stage, target: Target) -> tuple[int, int] | None:
    """Return (input, dim along the lanes) for a product whose input should be packed."""
    inputs = [x for x in stage.inputs if isinstance(x, Access)]
    if (
        len(inputs) != 2
        or len(stage.inputs) != 2
        or len(stage.outputs) != 1
        or not stage.reduction_dims
    ):
        return None
    lanes = [d for d in stage.parallel_dims if stage.outputs[0].strides[d] == 1]
    if len(lanes) != 1 or stage.extents[lanes[0]] == 1:
        return None
    movers = [k for k, x in enumerate(inputs) if x.moves(lanes[0])]
    if len(movers) != 1:
        return None
    x, other = inputs[movers[0]], inputs[1 - movers[0]]
    maps = ir.ArrayAttr(stage.op.attributes["indexing_maps"])
    plain = all(
        isinstance(e, ir.AffineDimExpr) for e in ir.AffineMapAttr(maps[movers[0]]).value.results
    )
    if (
        not plain
        or x.nonlinear
        or not all(x.moves(d) and other.moves(d) for d in stage.reduction_dims)
    ):
        return None
    rows = [stage.extents[d] for d in stage.parallel_dims if not x.moves(d)]
    stride = x.strides[lanes[0]]
    gathered = not (isinstance(stride, int) and stride == 1)
    if gathered:
        return (movers[0], lanes[0]) if _at_least(rows, _ROWS_IF_GATHERED) else None
    wide = stage.extents[lanes[0]]
    enough = isinstance(wide, int) and wide >= 2 * target.vector_bits // _bits(x.element)
    known = all(isinstance(r, int) for r in rows)
    least = _rows_if_strided(stage, x, lanes[0], target)
    if enough and known and least is not None and _at_least(rows, least):
        return movers[0], lanes[0]
    return None


def _rows_if_strided(stage: Stage, x: Access, lanes: int, target: Target) -> int | None:
    """Return the rows from which on copying pays for an operand with lanes side by side.

    None: never. What is small and not far apart is read well enough where it is.
    """
    far = any(_is_far(x.strides[d], x.element) for d in stage.reduction_dims)
    matrix = _size(stage, x, [lanes, *stage.reduction_dims])
    whole = _size(stage, x, range(len(stage.extents)))
    if matrix is None or whole is None:
        return _ROWS_IF_STRIDED if far else None
    if not far and matrix < target.l2_bytes // 4:
        return None
    if whole > target.last_cache_bytes // 8:
        return _ROWS_IF_STRIDED
    if far:
        return _ROWS_IF_CACHED
    column = _size(stage, x, stage.reduction_dims)
    panel = 2 * target.vector_bits // _bits(x.element)
    deep = column is not None and column * panel > target.l2_bytes // 8
    return _ROWS_IF_DEEP if deep else _ROWS_IF_STRIDED


def _size(stage: Stage, x: Access, dims: Iterable[int]) -> int | None:
    """Return the bytes of what `x` reads along `dims`, None where an extent is unknown."""
    total = _bits(x.element) // 8
    for d in dims:
        extent = stage.extents[d]
        if x.moves(d):
            if not isinstance(extent, int):
                return None
            total *= extent
    return total


def _is_far(stride: Index, element: ir.Type) -> bool:
    return not isinstance(stride, int) or stride * _bits(element) // 8 >= _FAR_BYTES


def _at_least(extents: Sequence[Index], rows: int) -> bool:
    """Tell whether the product of extents surely or probably reaches `rows`."""
    total = 1
    for extent in extents:
        if not isinstance(extent, int):
            return True
        total *= extent
    return total >= rows


def _panel_order(stage: Stage, dims: Sequence[int], lanes: int) -> list[int]:
    """Return the loop dims of the panels' axes: batch and others, panels, reduction; then lanes."""
    reduction = [d for d in stage.reduction_dims if d in dims]
    return [d for d in dims if d != lanes and d not in reduction] + [lanes] + reduction


def _allocate(
    stage: Stage, order: Sequence[int], lanes: int, width: int, element: ir.Type
) -> ir.Value:
    sizes = [ceildiv(stage.extents[d], width) if d == lanes else stage.extents[d] for d in order]
    dynamic = ir.ShapedType.get_dynamic_size()
    shape = [s if isinstance(s, int) else dynamic for s in sizes] + [width]
    type_ = ir.MemRefType.get(shape, element)
    return ir.memref.alloc(type_, [value(s) for s in sizes if not isinstance(s, int)], [])


def _panel_map(n_dims: int, order: Sequence[int], lanes: int, width: int) -> ir.AffineMap:
    lane = ir.AffineExpr.get_dim(lanes)
    results = [
        ir.AffineExpr.get_floor_div(lane, width) if d == lanes else ir.AffineExpr.get_dim(d)
        for d in order
    ]
    return ir.AffineMap.get(n_dims, 0, [*results, ir.AffineExpr.get_mod(lane, width)])


def _copy(
    source: ir.Value,
    panels: ir.Value,
    dims: Sequence[int],
    order: Sequence[int],
    lanes: int,
    width: int,
    stage: Stage,
) -> ir.OpView:
    """Build the generic that copies the operand into its panels."""
    place = {d: i for i, d in enumerate(dims)}
    n = len(dims)
    element = ir.MemRefType(source.type).element_type
    read = ir.AffineMap.get_identity(n)
    write = _panel_map(n, [place[d] for d in order], place[lanes], width)
    iterator = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    op = ir.Operation.create(
        "linalg.generic",
        operands=[source, panels],
        attributes={
            "indexing_maps": ir.ArrayAttr.get(
                [ir.AffineMapAttr.get(read), ir.AffineMapAttr.get(write)]
            ),
            "iterator_types": ir.ArrayAttr.get([iterator] * n),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    unknown = ir.Location.unknown()
    block = ir.Block.create_at_start(op.regions[0], [element, element], [unknown, unknown])
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
    return op.opview


def _bits(element: ir.Type) -> int:
    if isinstance(element, ir.FloatType):
        return int(element.width)
    return int(ir.IntegerType(element).width) if isinstance(element, ir.IntegerType) else 64

"""Tensor ops that do not bufferize, or that hide what they are, as plainer ones."""

from __future__ import annotations

from metadef import ir
from metadef.diagnostics import UnsupportedOpError

_DYNAMIC = ir.ShapedType.get_dynamic_size()


def rewrite_tensor_ops(function: ir.OpView) -> None:
    """Rewrite tensor.pad, tensor.concat and generics that only fill; drop run-time asserts.

    The asserts check what eager mode would raise for (sizes that do not fit); the model's inputs
    were checked against its symbols before native code runs.
    """
    rewrites = {
        "tensor.pad": _rewrite_pad,
        "tensor.concat": _rewrite_concat,
        "linalg.generic": _rewrite_fill,
    }
    for op in list(ir.operations(function)):
        if op.operation.name == "cf.assert":
            op.operation.erase()
        elif op.operation.name in rewrites:
            with ir.InsertionPoint(op), op.location:
                new = rewrites[op.operation.name](op)
            if new is not None:
                op.operation.results[0].replace_all_uses_with(new)
                op.operation.erase()


def unshare_destinations(function: ir.OpView) -> None:
    """Give every destination operand its own tensor.empty or fill.

    One value as two destinations bufferizes to one buffer for both, and to copies otherwise.
    """
    for op in list(ir.operations(function)):
        for i, operand in enumerate(list(op.operation.operands)):
            source = operand.owner
            if not isinstance(source, ir.OpView | ir.Operation) or len(list(operand.uses)) < 2:
                continue
            if source.name not in ("tensor.empty", "linalg.fill"):
                continue
            if source.name == "linalg.fill" and op.operation.name == "tensor.dim":
                continue
            with ir.InsertionPoint(op):
                copy = source.operation.clone()
            if source.name == "linalg.fill":
                with ir.InsertionPoint(copy):
                    copy.operands[1] = source.operands[1].owner.operation.clone().results[0]
            op.operation.operands[i] = copy.results[0]


def drop_overwritten_fills(function: ir.OpView) -> None:
    """Let a generic that overwrites all of a filled destination write into an empty tensor."""
    for op in list(ir.operations(function)):
        if op.operation.name != "linalg.generic":
            continue
        operands = list(op.operation.operands)
        first = ir.DenseI32ArrayAttr(op.operation.attributes["operandSegmentSizes"])[0]
        maps = ir.ArrayAttr(op.operation.attributes["indexing_maps"])
        block = op.operation.regions[0].blocks[0]
        for i in range(first, len(operands)):
            fill = operands[i].owner
            if isinstance(fill, ir.Block) or fill.name != "linalg.fill":
                continue
            if list(block.arguments[i].uses) or not _covers(maps[i], operands[i].type):
                continue
            op.operation.operands[i] = fill.operands[1]


def _covers(map_: ir.Attribute, type_: ir.Type) -> bool:
    """Answer whether a map reaches every element: each dim is a loop of its own, or has size 1."""
    loops = []
    for expr, extent in zip(ir.AffineMapAttr(map_).value.results, type_.shape, strict=True):
        if isinstance(expr, ir.AffineDimExpr):
            loops.append(expr.position)
        elif extent != 1:
            return False
    return len(set(loops)) == len(loops)


def _index(value: int) -> ir.Value:
    return ir.arith.constant(ir.IndexType.get(), value)


def dim_of(tensor: ir.Value, dim: int) -> ir.Value:
    """Return the extent of a dim as an index."""
    type_ = ir.RankedTensorType(tensor.type)
    if not type_.is_dynamic_dim(dim):
        return _index(type_.get_dim_size(dim))
    return ir.tensor.dim(tensor, _index(dim))


def _empty(type_: ir.RankedTensorType, sizes: list[ir.Value]) -> ir.Value:
    dynamic = [s for i, s in enumerate(sizes) if type_.is_dynamic_dim(i)]
    return ir.Operation.create("tensor.empty", results=[type_], operands=dynamic).result


def _insert(part: ir.Value, tensor: ir.Value, offsets: list[ir.Value]) -> ir.Value:
    type_ = ir.RankedTensorType(part.type)
    sizes = [dim_of(part, i) for i in range(type_.rank) if type_.is_dynamic_dim(i)]
    return ir.Operation.create(
        "tensor.insert_slice",
        results=[tensor.type],
        operands=[part, tensor, *offsets, *sizes],
        attributes={
            "static_offsets": ir.DenseI64ArrayAttr.get([_DYNAMIC] * type_.rank),
            "static_sizes": ir.DenseI64ArrayAttr.get(list(type_.shape)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * type_.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1, len(offsets), len(sizes), 0]),
        },
    ).result


def _rewrite_pad(op: ir.OpView) -> ir.Value:
    """A fill, and the source inserted at `low`."""
    source = op.operation.operands[0]
    type_ = ir.RankedTensorType(op.operation.results[0].type)
    segments = list(ir.DenseI32ArrayAttr(op.operation.attributes["operandSegmentSizes"]))
    dynamic = list(op.operation.operands)[1:]
    low = _mixed(op, "static_low", dynamic[: segments[1]])
    high = _mixed(op, "static_high", dynamic[segments[1] :])
    block = op.operation.regions[0].blocks[0]
    *inner, terminator = list(block.operations)
    if any(list(a.uses) for a in block.arguments):
        raise UnsupportedOpError("tensor.pad with a value that depends on the position")
    for inside in inner:
        inside.operation.move_before(op.operation)
    value = terminator.operation.operands[0]
    sizes = [
        ir.arith.addi(ir.arith.addi(dim_of(source, i), low[i]), high[i]) for i in range(type_.rank)
    ]
    filled = ir.linalg.fill(value, outs=[_empty(type_, sizes)])
    return _insert(source, filled, low)


def _mixed(op: ir.OpView, name: str, dynamic: list[ir.Value]) -> list[ir.Value]:
    rest = list(dynamic)
    static = ir.DenseI64ArrayAttr(op.operation.attributes[name])
    return [rest.pop(0) if v == _DYNAMIC else _index(v) for v in static]


def _rewrite_concat(op: ir.OpView) -> ir.Value:
    """Each operand inserted after the ones before it."""
    type_ = ir.RankedTensorType(op.operation.results[0].type)
    dim = ir.IntegerAttr(op.operation.attributes["dim"]).value
    parts = list(op.operation.operands)
    starts = [_index(0)]
    for part in parts:
        starts.append(ir.arith.addi(starts[-1], dim_of(part, dim)))
    sizes = [starts[-1] if i == dim else dim_of(parts[0], i) for i in range(type_.rank)]
    result = _empty(type_, sizes)
    for part, start in zip(parts, starts, strict=False):
        offsets = [start if i == dim else _index(0) for i in range(type_.rank)]
        result = _insert(part, result, offsets)
    return result


def _rewrite_fill(op: ir.OpView) -> ir.Value | None:
    """A generic that yields its one scalar operand is a fill (named ops were generalized)."""
    operands = list(op.operation.operands)
    if len(operands) != 2 or isinstance(operands[0].type, ir.ShapedType):
        return None
    block = op.operation.regions[0].blocks[0]
    body = list(block.operations)
    if len(body) != 1 or body[0].operation.operands[0] != block.arguments[0]:
        return None
    value: ir.Value = ir.linalg.fill(operands[0], outs=[operands[1]])
    return value

"""Kernels over any sizes: what runs once, on many shapes, need not be compiled for each of them."""

from __future__ import annotations

from collections.abc import Iterator

from metadef import ir
from metadef.dialects.metadef.attributes import integers
from metadef.dialects.metadef.types import dims_of, element_of, tensor_type

#: a smaller dim is a window or a group, and the loop over it better unrolled
_LEAST = 8
#: a last dim up to this is a panel that a transpose fills: its loads and stores are chosen by it
_PANEL = 64

PAD, TRANSPOSE = "metadef.pad", "metadef.transpose"
_LITERALS = ("metadef.constant", "metadef.fill")
_Axis = tuple[ir.Value, int]


def name_sizes(function: ir.OpView) -> dict[str, int]:
    """Replace the sizes of a kernel by symbols; return the values of those, in order of use.

    Dims that are equal because of what an op is get one symbol, those that happen to be equal two.
    Nothing changes where an op depends on its sizes in other ways than by its types.
    """
    block = ir.entry_block(function)
    operations = [op.operation for op in block.operations]
    values = [*block.arguments, *(r for op in operations for r in op.results)]
    if not all(ir.RankedTensorType(v.type).has_static_shape for v in values):
        return {}
    owner: dict[_Axis, _Axis] = {}

    def find(axis: _Axis) -> _Axis:
        while axis in owner:
            axis = owner[axis]
        return axis

    for op in operations:
        pairs = _equal_axes(op)
        if pairs is None:
            return {}
        for one, other in pairs:
            if find(one) != find(other):
                owner[find(one)] = find(other)
    kept = {find(axis) for axis in _kept(operations)}
    names: dict[_Axis, str] = {}
    sizes: dict[str, int] = {}
    for value in values:
        dims: list[int | str] = []
        for axis, dim in enumerate(dims_of(value.type)):
            group = find((value, axis))
            if dim.value == 1 or group in kept:
                dims.append(dim.value)
            else:
                dims.append(names.setdefault(group, f"n{len(names)}"))
                sizes[names[group]] = dim.value
        value.set_type(tensor_type(dims, element_of(value.type)))
    types = [v.type for v in block.arguments], [v.type for v in operations[-1].operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))
    return sizes


def _equal_axes(op: ir.Operation) -> list[tuple[_Axis, _Axis]] | None:
    """Return the pairs of axes that an op makes equal; None for an op of fixed sizes."""
    if op.name == TRANSPOSE:
        (x,), (y,) = op.operands, op.results
        return [((y, i), (x, p)) for i, p in enumerate(integers(op, "perm"))]
    if op.name == "metadef.pointwise":
        (y,) = op.results
        size = dims_of(y.type)
        return [
            ((y, len(size) - back), (x, len(dims) - back))
            for x in op.operands
            for dims in [dims_of(x.type)]
            for back in range(1, len(dims) + 1)
            if dims[-back] == size[-back]
        ]
    if op.name == PAD:
        (x,), (y,) = op.operands, op.results
        return [((y, axis), (x, axis)) for axis in range(len(dims_of(y.type)))]
    is_scalar = all(not dims_of(r.type) for r in op.results)
    return [] if op.name == "func.return" or (op.name in _LITERALS and is_scalar) else None


def _kept(operations: list[ir.Operation]) -> Iterator[_Axis]:
    """Yield the axes whose sizes decide how code is made."""
    for op in operations:
        for value in op.results:
            dims = dims_of(value.type)
            for axis, dim in enumerate(dims[1:], 1):
                if dim.value < _LEAST:
                    yield value, axis
            if op.name == TRANSPOSE and dims[-1].value <= _PANEL:
                yield value, len(dims) - 1
            if op.name == PAD:
                yield from (
                    (value, axis)
                    for axis, dim in enumerate(dims_of(op.operands[0].type))
                    if dim != dims[axis]
                )

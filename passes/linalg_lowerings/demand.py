"""Which values are stored although they could be computed where they are read.

A lazy value (pointwise ops, views) that several generics would read is computed once and stored,
unless computing it again is cheaper than the traffic: no transcendental or division in it, and no
more than two tensors read.
"""

from __future__ import annotations

from collections.abc import Sequence

from metadef import ir
from metadef.dialects.metadef.attributes import text

from .expression import EXPENSIVE

#: ops whose result is an expression of their operands
LAZY = frozenset(
    f"metadef.{name}"
    for name in "pointwise reshape broadcast transpose slice unpack iota fill dim constant take"
    " gather resample".split()
)
#: ops that leave an expensive expression: transcendentals, or loads at computed indices
EXPENSIVE_TAIL = frozenset(
    {"metadef.softmax", "metadef.norm", "metadef.resample", "metadef.take", "metadef.gather"}
)
#: reading more tensors than this is not done twice
CHEAP_LOADS = 2


def values_to_store(block: Sequence[ir.OpView]) -> set[ir.Value]:
    """Return the results of lazy ops in a kernel's block that must be stored when they are made."""
    expensive, loads = _costs(block)
    readers: dict[ir.Value, set[object]] = {}
    stored: set[ir.Value] = set()
    for op in reversed(block):
        for result in op.operation.results:
            found = readers.setdefault(result, set())
            cheap = result not in expensive and loads[result] <= CHEAP_LOADS
            if len(found) > 1 and not cheap:
                stored.add(result)
                readers[result] = {result}
        for operand in op.operation.operands:
            readers.setdefault(operand, set()).update(_readers_through(op, operand, readers))
    return stored


def _readers_through(
    op: ir.OpView, operand: ir.Value, readers: dict[ir.Value, set[object]]
) -> set[object]:
    """Return the generics that read `operand` because of `op`."""
    if op.operation.name in LAZY:
        return readers[op.operation.results[0]]
    if op.operation.name == "func.return":
        # Outputs over one space share a generic.
        return {("out", str(ir.RankedTensorType(operand.type).shape), str(operand.type.encoding))}
    return {op.operation}


def _costs(block: Sequence[ir.OpView]) -> tuple[set[ir.Value], dict[ir.Value, int]]:
    """Return the values that compute something expensive, and how many tensors each reads."""
    expensive: set[ir.Value] = set()
    leaves: dict[ir.Value, frozenset[ir.Value]] = {}
    for op in block:
        name = op.operation.name
        for result in op.operation.results:
            if name not in LAZY:
                leaves[result] = frozenset({result})
            else:
                parts = [leaves.get(o, frozenset({o})) for o in op.operation.operands]
                leaves[result] = frozenset().union(*parts)
            costly = name in EXPENSIVE_TAIL or (
                name == "metadef.pointwise" and text(op, "fn") in EXPENSIVE
            )
            inherits = name in LAZY and any(o in expensive for o in op.operation.operands)
            if costly or inherits:
                expensive.add(result)
    return expensive, {value: len(found) for value, found in leaves.items()}

"""What the back graph's values are in memory: owner, buffer behind reshapes, bytes."""

from __future__ import annotations

from metadef import ir
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.symbolic import Dim, product

RESHAPE = "metadef.reshape"


def owner_of(value: ir.Value) -> ir.Operation | None:
    """Return the op that makes `value`, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else owner.operation


def has_uses(op: ir.Operation) -> bool:
    return any(True for result in op.results for _ in result.uses)


def root_of(value: ir.Value) -> ir.Value:
    """Return the value whose buffer `value` names: reshapes give a buffer another type."""
    while (owner := owner_of(value)) is not None and owner.name == RESHAPE:
        value = owner.operands[0]
    return value


def byte_size(type_: ir.Type) -> Dim:
    """Return the bytes of a dense tensor; an i1 takes a byte."""
    return product(dims_of(type_)) * element_bytes(element_of(type_))


def element_bytes(element: ir.Type) -> int:
    width: int = element.width
    return (width + 7) // 8


def values_known_once(block: ir.Block, without: str = "") -> set[ir.Value]:
    """Return the values that weights and constants alone decide, with static shapes.

    Results of ops named `without`, and what depends on them, are left out.
    """
    known: set[ir.Value] = set()
    for op in block.operations:
        if op.operation.name == without:
            continue
        results = list(op.operation.results)
        if all(v in known for v in op.operation.operands) and all(
            ir.ShapedType(r.type).has_static_shape for r in results
        ):
            known.update(results)
    return known

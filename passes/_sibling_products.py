"""Products of one operand by weights that are known once: which there are, and what follows all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, text
from metadef.dialects.metadef.ops.concat import ConcatOp
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.symbolic import Dim

from ._buffers import RESHAPE, root_of
from ._fusion import POINTWISE
from ._part_readers import reads_in_place, splits_last_dim
from ._structure import WEIGHTS

CONTRACTION = "metadef.contraction"


@dataclass(frozen=True)
class Step:
    """A pointwise op that follows each product, at the same operand: `ops[i]` is product i's, None
    where it has no bias and the others do."""

    ops: tuple[ir.Operation | None, ...]
    at: int

    @property
    def first(self) -> ir.Operation:
        return next(op for op in self.ops if op is not None)


def sibling_sets(block: ir.Block) -> list[list[ir.Operation]]:
    """Return the products of each left operand that several products have, under whatever name."""
    found: dict[tuple[ir.Value, ir.Type], list[ir.Operation]] = {}
    for op in block.operations:
        if op.operation.name == CONTRACTION:
            lhs = op.operation.operands[0]
            found.setdefault((root_of(lhs), lhs.type), []).append(op.operation)
    return [ops for ops in found.values() if len(ops) > 1]


def problem_of(
    ops: Sequence[ir.Operation],
    once: Collection[ir.Value],
    sets: Mapping[ir.Operation, Sequence[ir.Operation]],
) -> str | None:
    """Return what products of one operand lack to be one, or None; `sets` has each product's."""
    first = ops[0]
    weights = [op.operands[1] for op in ops]
    if first.operands[0] in once or any(w not in once for w in weights):
        return "right operands, and no left one, that are known once"
    if shape_of(first.operands[0]).rank != 2 or any(shape_of(w).rank != 2 for w in weights):
        return "operands of rank 2"
    if len({(shape_of(w).element, boolean(op, "transpose_lhs")) for w, op in _with(ops)}) > 1:
        return "weights of one type, and the left operand transposed for all or none"
    if len({str(op.attributes[WEIGHTS]) if WEIGHTS in op.attributes else "" for op in ops}) > 1:
        return f"the same {WEIGHTS}"
    if len(ops) > ConcatOp.operand_groups:
        return f"at most {ConcatOp.operand_groups} products"
    # Weights that a product reads alone, or in another set, would be stored twice.
    for weight in weights:
        for use in weight.uses:
            other = use.owner.operation
            if (
                other.name == CONTRACTION
                and [o.operands[1] for o in sets.get(other, ())] != weights
            ):
                return "weights that no other product reads"
    return None


def _with(ops: Sequence[ir.Operation]) -> Iterator[tuple[ir.Value, ir.Operation]]:
    return ((op.operands[1], op) for op in ops)


def shared_epilogue(
    ops: Sequence[ir.Operation], once: Collection[ir.Value]
) -> tuple[list[Step], list[ir.Value]]:
    """Return the pointwise ops that follow all products alike, and what each product is then.

    Alike: the same function of the product and of vectors along its outputs or scalars, known
    once. A bias that only some have is 0 for the others.
    """
    values = [op.results[0] for op in ops]
    steps: list[Step] = []
    while (step := _shared_step(values, once, biases=not steps)) is not None:
        steps.append(step)
        values = [
            v if op is None else op.results[0] for v, op in zip(values, step.ops, strict=True)
        ]
    return steps, values


def _shared_step(
    values: Sequence[ir.Value], once: Collection[ir.Value], biases: bool
) -> Step | None:
    found = [_follower(value, once) for value in values]
    added = [f if f is not None and text(f[0], "fn") == "add" else None for f in found]
    floats = isinstance(shape_of(values[0]).element, ir.FloatType)
    if biases and floats and any(f is not None for f in added):
        found = added
    elif None in found:
        return None
    kinds = {(text(op, "fn"), at, *_types(op)) for op, at in filter(None, found)}
    if len(kinds) != 1:
        return None
    (_, at, *_), *_ = kinds
    return Step(tuple(None if f is None else f[0] for f in found), at)


def _follower(value: ir.Value, once: Collection[ir.Value]) -> tuple[ir.Operation, int] | None:
    """Return the one op that reads a product, with the operand where, if it is pointwise and its
    other operands are known once and vary along the outputs alone."""
    uses = list(value.uses)
    if len(uses) != 1:
        return None
    op, at = uses[0].owner.operation, uses[0].operand_number
    dims = shape_of(value).dims
    if op.name != POINTWISE or shape_of(op.results[0]).dims != dims:
        return None
    for other in op.operands:
        if other != value and (other not in once or not _along_outputs(other, dims[-1])):
            return None
    return op, at


def _along_outputs(value: ir.Value, outputs: Dim) -> bool:
    dims = shape_of(value).dims
    return all(d == ONE for d in dims[:-1]) and (not dims or dims[-1] in (ONE, outputs))


def _types(op: ir.Operation) -> tuple[Any, ...]:
    return (*(shape_of(v).element for v in op.operands), shape_of(op.results[0]).element)


def needs_a_pass(part: ir.Value) -> bool:
    """Tell whether a product's result would go through a kernel of its own if it were a part of
    another: as its reader wants it dense, or is an epilogue of its own."""
    for use in part.uses:
        op = use.owner.operation
        if op.name == POINTWISE or (op.name != RESHAPE and not reads_in_place(use)):
            return True
        if op.name == RESHAPE and not _is_read_in_place(op):
            return True
    return False


def _is_read_in_place(reshape: ir.Operation) -> bool:
    run = splits_last_dim(reshape)
    if run is None:
        return False
    return all(reads_in_place(use) for use in reshape.results[0].uses)

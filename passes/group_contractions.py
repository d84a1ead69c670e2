"""Group products of one operand by weights known once: one product, whose parts are read."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

from metadef import ir
from metadef.cost.grouping import Siblings, apart_cycles, grouped_cycles, is_grouped
from metadef.device import attribute as device
from metadef.diagnostics import MetadefError, location_text
from metadef.dialects.metadef.attributes import boolean, text
from metadef.dialects.metadef.ops.broadcast import broadcast
from metadef.dialects.metadef.ops.concat import concat
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.fill import fill
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.slice import slice as slice_dim
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.rewrite import apply_patterns

from ._buffers import RESHAPE, element_bytes, has_uses, owner_of, values_known_once
from ._identities import fold_reshape
from ._kernel_abi import least_values, most_values
from ._locations import fuse_locations
from ._part_readers import give_each_reader_a_slice, sink_slice_below_reshape
from ._planned import has_plan, note_decision, wanted
from ._reshapes import reshaped
from ._sibling_products import (
    CONTRACTION,
    Step,
    needs_a_pass,
    problem_of,
    shared_epilogue,
    sibling_sets,
)
from ._structure import WEIGHTS, operations_key

#: views that slices leave behind when they sink
_LEFT = frozenset({"metadef.slice", RESHAPE})
#: what a plan calls such decisions
KIND = "grouping"
GROUPED, APART = "grouped", "apart"


@dataclass(frozen=True)
class GroupContractions(Pass):
    """Compute products of one operand as one, by their weights side by side, where that costs less.

    Before:
        %0 = "metadef.contraction"(%x, %q) <{transpose_rhs = true}> : [M, K] x [N, K]
        %1 = "metadef.pointwise"(%0, %b) <{fn = "add"}> : [M, N], [N]
        %2 = "metadef.reshape"(%1) : [M, N] -> [M, H, N/H]
        %3 = "metadef.contraction"(%x, %k) <{transpose_rhs = true}> : [M, K] x [O, K]
    After:
        %0 = "metadef.concat"(%q, %k) <{dim = 0}> : [N, K], [O, K] -> [N + O, K]
        %1 = "metadef.concat"(%b, -0.0) <{dim = 0}> : [N], [O] -> [N + O]
        %2 = "metadef.contraction"(%x, %0) <{transpose_rhs = true}> : [M, K] x [N + O, K]
        %3 = "metadef.pointwise"(%2, %1) <{fn = "add"}> : [M, N + O], [N + O]
        %4 = "metadef.reshape"(%3) : [M, N + O] -> [M, (N + O)/(N/H), N/H]
        %5 = "metadef.slice"(%4) <{dim = 1, start = "0", step = 1}> : -> [M, H, N/H]
        %6 = "metadef.slice"(%3) <{dim = 1, start = "N", step = 1}> : -> [M, O]

    The weights are joined once, in @init. Pointwise ops that follow all products alike (a bias, an
    activation) follow the one; others read their part. Slices sink below reshapes, to stand next to
    who reads them: attention, products, pointwise ops, norms read a part where it lies.

    `cost/grouping.py` compares by the module's `device.spec` (without one nothing is grouped), each
    symbol counting as its least value; at its largest, grouping must not lose. The module's
    `metadef.plan` overrides the cost (see `_planned.py`); what cannot be is passed over.
    """

    accepts = FRONT
    requires: ClassVar[str] = "the result of canonicalize-contractions, without dead ops"
    leaves: ClassVar[str] = "the same; slices of results below reshapes"

    def run(self, module: ir.Operation) -> None:
        for function in ir.entry_block(module).operations:
            if function.operation.name != "func.func" or function.is_external:
                continue
            block = ir.entry_block(function)
            grouped = _Grouper(module, block).run()
            if any(op.operation.name == "metadef.slice" for op in block.operations):
                apply_patterns(function.operation, [sink_slice_below_reshape, fold_reshape])
            for value in grouped:
                give_each_reader_a_slice(value)
            for op in reversed(list(block.operations)):
                if op.operation.name in _LEFT and not has_uses(op.operation):
                    op.operation.erase()  # a slice that sank stood here


class _Grouper:
    """The decisions for the products of one function."""

    def __init__(self, module: ir.Operation, block: ir.Block) -> None:
        self.module = module
        self.spec = device.of(module) if device.ATTRIBUTE in module.attributes else None
        self.sets = sibling_sets(block)
        self.set_of = {op: ops for ops in self.sets for op in ops}
        self.once = values_known_once(block) if self.sets else set()
        self.held = _bytes_of_weights(block, self.once) if self.sets else 0
        ops = block.operations if self.sets else ()
        self.place: dict[ir.Operation, float] = {o.operation: i for i, o in enumerate(ops)}
        self.by_weights: dict[tuple[ir.Value, ...], list[list[ir.Operation]]] = {}
        for ops in self.sets:
            self.by_weights.setdefault(_weights(ops), []).append(ops)
        self.joined: dict[tuple[ir.Value, ...], ir.Value] = {}

    def run(self) -> list[ir.Value]:
        """Group what is to be grouped; return the results."""
        decided = [(ops, self._is_grouped(ops)) for ops in self.sets]
        return [self._group(ops) for ops, grouped in decided if grouped]

    def _is_grouped(self, ops: Sequence[ir.Operation]) -> bool:
        """Decide by the plan, or by cost."""
        problem = problem_of(ops, self.once, self.set_of)
        if problem is None and self.spec is None:
            problem = "a device.spec on the module"
        key = operations_key(op.opview for op in ops)
        choices = wanted(self.module, KIND, key)
        refused = []
        # Of weights that several sets have, one way alone is stored.
        grouped = problem is None and all(
            self._gains(same) for same in self.by_weights[_weights(ops)]
        )
        for choice in choices:
            if choice == GROUPED and problem is not None:
                refused.append(_refusal(ops[0], problem))
                continue
            grouped = choice == GROUPED
            break
        if has_plan(self.module) and (problem is None or choices):
            chosen = GROUPED if grouped else APART
            note_decision(self.module, KIND, key, ops[0].opview, chosen, refused, others=ops[1:])
        return grouped

    def _gains(self, ops: Sequence[ir.Operation]) -> bool:
        """Tell whether one product costs less at the least sizes, and not more at the largest."""
        assert self.spec is not None
        least = self._siblings(ops, least_values(self.module))
        most = self._siblings(ops, most_values(self.module))
        if not is_grouped(least, self.spec):
            return False
        return grouped_cycles(most, self.spec) <= apart_cycles(most, self.spec)

    def _siblings(self, ops: Sequence[ir.Operation], values: Mapping[str, int]) -> Siblings:
        lhs = shape_of(ops[0].operands[0])
        rows, depth = reversed(lhs.dims) if boolean(ops[0], "transpose_lhs") else lhs.dims
        outputs = tuple(shape_of(op.results[0]).dims[1].value for op in ops)
        _, parts = shared_epilogue(ops, self.once)
        return Siblings(
            *(rows.evaluate(values), depth.evaluate(values), outputs),
            *(element_bytes(lhs.element), self.held),
            tuple(
                rows.evaluate(values) * n
                for n, part in zip(outputs, parts, strict=True)
                if needs_a_pass(part)
            ),
        )

    def _group(self, ops: Sequence[ir.Operation]) -> ir.Value:
        """Replace products by one."""
        steps, parts = shared_epilogue(ops, self.once)
        first = ops[0]
        followers = [op for step in steps for op in step.ops if op is not None]
        for op in (*ops, *followers):
            for value in op.operands:
                if value in self.once:
                    self._make_before(value, first)
        with ir.InsertionPoint(first), fuse_locations(op.location for op in (*ops, *followers)):
            value = contraction(
                *(first.operands[0], self._joined_weights(ops)),
                *(boolean(first, "transpose_lhs"), boolean(first, "transpose_rhs")),
            )
            if WEIGHTS in first.attributes:
                value.owner.operation.attributes[WEIGHTS] = first.attributes[WEIGHTS]
            for step in steps:
                value = _follow(step, value, parts)
            start = 0
            for part in parts:
                size = shape_of(part).dims[1].value
                part.replace_all_uses_with(slice_dim(value, 1, start, size))
                start += size
        for op in (*reversed(followers), *ops):
            op.erase()
        return value

    def _joined_weights(self, ops: Sequence[ir.Operation]) -> ir.Value:
        """Return the weights side by side, as the first product reads its own."""
        weights = _weights(ops)
        turned = boolean(ops[0], "transpose_rhs")
        if weights not in self.joined:
            alike = [
                w if boolean(op, "transpose_rhs") == turned else transpose(w, [1, 0])
                for w, op in zip(weights, ops, strict=True)
            ]
            self.joined[weights] = concat(alike, 0 if turned else 1)
        return self.joined[weights]

    def _make_before(self, value: ir.Value, first: ir.Operation) -> None:
        """Move what makes a value that is known once to before `first`, where it comes later."""
        owner = owner_of(value)
        if owner is None or self.place[owner] < self.place[first]:
            return
        for operand in owner.operands:
            self._make_before(operand, first)
        owner.move_before(first)
        self.place[owner] = self.place[first] - 0.5  # it is there for others that need it too


def _weights(ops: Sequence[ir.Operation]) -> tuple[ir.Value, ...]:
    return tuple(op.operands[1] for op in ops)


def _follow(step: Step, value: ir.Value, parts: Sequence[ir.Value]) -> ir.Value:
    """Build the op that follows all products for the one product."""
    first = step.first
    outputs = [shape_of(part).dims[1] for part in parts]
    operands = [value if at == step.at else None for at in range(len(first.operands))]
    for at in range(len(operands)):
        if at == step.at:
            continue
        vectors = []
        for op, size in zip(step.ops, outputs, strict=True):
            if op is None:
                vectors.append(fill([size], -0.0, shape_of(first.operands[at]).element))
            else:
                vectors.append(_vector(op.operands[at], size))
        operands[at] = concat(vectors, 0)
    element = shape_of(first.results[0]).element
    return pointwise(text(first, "fn"), *operands, element=element)


def _vector(value: ir.Value, size: Any) -> ir.Value:
    """Return a vector along the outputs, or a scalar, as a vector [size]."""
    dims = shape_of(value).dims
    flat = reshaped(value, [dims[-1] if dims else ONE])
    return flat if shape_of(flat).dims[0] == size else broadcast(flat, [size])


def _bytes_of_weights(block: ir.Block, once: Collection[ir.Value]) -> int:
    """Return the bytes of all products' weights, each once."""
    found = {
        op.operation.operands[1]
        for op in block.operations
        if op.operation.name == CONTRACTION and op.operation.operands[1] in once
    }
    shapes = [shape_of(value) for value in found]
    return sum(prod(d.value for d in s.dims) * element_bytes(s.element) for s in shapes)


def _refusal(op: ir.Operation, problem: str) -> str:
    place = location_text(op.location)
    return str(
        MetadefError(
            f"'metadef.contraction' op: {KIND} = \"{GROUPED}\" needs {problem}; from {place}"
        )
    )

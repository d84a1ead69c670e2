"""Choose the type that weights of products are stored in: f32, or fewer bits widened when read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any, ClassVar

from metadef import ir
from metadef.cost.weights import ERRORS, F32_BYTES, Product, cheapest_type
from metadef.device import attribute as device
from metadef.device.instructions import converts_halves
from metadef.diagnostics import MetadefError, location_text, near_names
from metadef.dialects.metadef.attributes import boolean, real, text
from metadef.dialects.metadef.ops.constant import constant
from metadef.dialects.metadef.ops.contraction import NARROW, contraction
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.reduce import reduce
from metadef.dialects.metadef.shapes import shape_of
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.symbolic import product

from ._buffers import values_known_once
from ._kernel_abi import least_values
from ._planned import ERROR_LIMIT, has_plan, note_decision, wanted
from ._reshapes import reshaped
from ._structure import WEIGHTS, operation_key

#: what a plan calls such decisions
KIND = "precision"
F32, I8 = "f32", "i8"
TYPES = (F32, *NARROW)
#: the largest magnitude of symmetric i8
_STEPS = 127
#: a channel of zeros is divided by this, the least normal f32
_LEAST_SCALE = 2.0**-126

#: the narrow form of weights that several products share, by their dim that is summed over
_Stored = dict[tuple[ir.Value, str, int], tuple[ir.Value, ir.Value | None]]


@dataclass(frozen=True)
class ChoosePrecision(Pass):
    """Store weights of products in fewer bits where that is wanted; who reads them widens them.

    Before:
        %y = "metadef.contraction"(%x, %w) {metadef.weights = "bf16"} : [M, K] x [K, N], in f32
        %z = "metadef.contraction"(%y, %v) {metadef.weights = "i8"} : [M, N] x [N, O], in f32
    After:
        %0 = "metadef.pointwise"(%w) <{fn = "cast"}> : [K, N] -> [K, N] in bf16
        %y = "metadef.contraction"(%x, %0) : [M, K] x [K, N], in f32 x bf16
        %s = max(reduce max |%v|, 2^-126) / 127 : [N, O] -> [1, O]
        %1 = "metadef.pointwise"(round(%v / %s)) <{fn = "cast"}> : [N, O] in i8
        %2 = "metadef.contraction"(%y, %1) : [M, N] x [N, O], in f32 x i8
        %z = "metadef.pointwise"(%2, %s) <{fn = "mul"}>

    For products in f32 whose right operand alone is known once. A contraction of mixed types reads
    narrow memory and computes in f32, so nobody can make the wide weights ahead of time; making the
    narrow ones depends on weights alone, and runs once.

    bf16 and f16 round to nearest, ties to even; f16 holds up to 65504, what is larger becomes
    infinite. i8 is symmetric with a scale for each output channel; a channel with a NaN or an
    infinity gives NaN.

    A contraction's `metadef.weights` says the type, or the module's `metadef.plan` does. Otherwise
    weights stay f32, unless the module has a `metadef.error_limit`: then `cost/weights.py` looks
    for the type that costs least of those whose error, over all products whose weights cost less
    so, stays within the limit.
    """

    accepts = FRONT
    requires: ClassVar[str] = "the result of canonicalize-contractions"
    leaves: ClassVar[str] = "the same; narrow weights are the right operands of products in f32"

    def run(self, module: ir.Operation) -> None:
        for function in ir.entry_block(module).operations:
            if function.operation.name == "func.func" and not function.is_external:
                _Chooser(module, ir.entry_block(function)).run()


class _Chooser:
    """The choices for the products of one function."""

    def __init__(self, module: ir.Operation, block: ir.Block) -> None:
        self.module = module
        self.spec = device.of(module) if device.ATTRIBUTE in module.attributes else None
        self.products = [o for o in block.operations if o.operation.name == "metadef.contraction"]
        self.once = values_known_once(block) if self.products else set()
        self.stored: _Stored = {}
        self.by_cost = self._by_cost(block) if ERROR_LIMIT in module.attributes else {}

    def run(self) -> None:
        for op, chosen in [(op, self._chosen(op)) for op in self.products]:
            if chosen != F32:
                with ir.InsertionPoint(op), op.location:
                    self._narrow(op, chosen)

    def _chosen(self, op: Any) -> str:
        """Return the type for the weights of a product: by its attribute, the plan, or by cost."""
        problem = _problem(op, self.once)
        if WEIGHTS in op.operation.attributes:
            return self._possible(op, text(op, WEIGHTS), problem)
        key = operation_key(op)
        choices = wanted(self.module, KIND, key)
        refused = []
        chosen = self.by_cost.get(op.operation, F32)
        for choice in choices:
            try:
                chosen = self._possible(op, choice, problem)
                break
            except MetadefError as error:
                refused.append(str(error))
        if has_plan(self.module) and (problem is None or choices):
            note_decision(self.module, KIND, key, op, chosen, refused)
        return chosen

    def _possible(self, op: Any, type_: str, problem: str | None) -> str:
        """Return a type that weights can have.

        Raises:
            MetadefError: no such type, or it cannot be used here.
        """
        if type_ not in TYPES:
            near = near_names(type_, TYPES)
            raise _error(op, type_, f"is none of {', '.join(TYPES)}{near}")
        if type_ != F32 and problem is not None:
            raise _error(op, type_, f"needs {problem}")
        if type_ == "f16" and (self.spec is None or not converts_halves(self.spec)):
            raise _error(op, type_, "needs a device with instructions that convert f16")
        return type_

    def _by_cost(self, block: ir.Block) -> dict[ir.Operation, str]:
        """Return the types that cost less than f32 within the module's limit."""
        possible = [op for op in self.products if _problem(op, self.once) is None]
        if not possible:
            return {}
        if self.spec is None:
            raise MetadefError(f"{ERROR_LIMIT}: needs a device.spec on the module")
        least = least_values(self.module)
        products = {op.operation: _product(op, least) for op in possible}
        distinct = {op.operands[1]: p.weights for op, p in products.items()}
        held = sum(distinct.values()) * F32_BYTES
        best = {op: cheapest_type(p, held, self.spec, ERRORS) for op, p in products.items()}
        gaining = {op for op, type_ in best.items() if type_ != F32}
        # Errors of several layers are independent, and add up at random.
        limit = real(self.module, ERROR_LIMIT) / sqrt(max(1, _longest_chain(block, gaining)))
        allowed = [type_ for type_, error in ERRORS.items() if error <= limit]
        return {op: cheapest_type(products[op], held, self.spec, allowed) for op in gaining}

    def _narrow(self, op: Any, type_: str) -> None:
        """Replace a product by one that reads its weights in another type."""
        lhs, weights = op.operation.operands
        flags = boolean(op, "transpose_lhs"), boolean(op, "transpose_rhs")
        summed = shape_of(weights).rank - (1 if flags[1] else 2)
        place = weights, type_, summed
        if place not in self.stored:
            self.stored[place] = _stored(weights, type_, summed)
        narrow, scale = self.stored[place]
        new = contraction(lhs, narrow, *flags)
        if scale is not None:
            new = pointwise("mul", new, scale)
        op.operation.results[0].replace_all_uses_with(new)
        op.operation.erase()


def _stored(weights: ir.Value, type_: str, summed: int) -> tuple[ir.Value, ir.Value | None]:
    """Build weights in another type, and what products with them are to be multiplied by."""
    element = ir.Type.parse(type_)
    if type_ != I8:
        return pointwise("cast", weights, element=element), None
    largest = reduce("max", pointwise("abs", weights), [summed], keepdim=True)
    floor, steps = (constant(x, ir.F32Type.get()) for x in (_LEAST_SCALE, float(_STEPS)))
    scale = pointwise("div", pointwise("maximum", largest, floor), steps)
    narrow = pointwise(
        "cast", pointwise("round", pointwise("div", weights, scale)), element=element
    )
    *batch, first, second = shape_of(scale).dims
    channels = [first * second]
    return narrow, reshaped(scale, [*batch, 1, *channels] if batch else channels)


def _error(op: Any, type_: str, problem: str) -> MetadefError:
    place = location_text(op.location)
    return MetadefError(
        f"'metadef.contraction' op: {WEIGHTS} = \"{type_}\" {problem}; from {place}"
    )


def _problem(op: Any, once: set[ir.Value]) -> str | None:
    """Return what a product lacks to have narrow weights, or None."""
    lhs, rhs = op.operation.operands
    if not all(isinstance(shape_of(v).element, ir.F32Type) for v in (lhs, rhs)):
        return "operands in f32"
    if rhs not in once or lhs in once:
        return "a right operand, and no left one, that is known once"
    return None


def _product(op: Any, least: Mapping[str, int]) -> Product:
    """Return the sizes of a product, a symbol counting as its least value."""
    *_, rows, outputs = shape_of(op.operation.results[0]).dims
    weights = [d.value for d in shape_of(op.operation.operands[1]).dims]
    *batch, _, _ = weights
    depth = prod(weights) // max(1, prod(batch) * outputs.value)
    shared = shape_of(op.operation.results[0]).dims[:-2]
    times = product([*shared]).evaluate(least) // max(1, prod(batch))
    return Product(rows.evaluate(least) * max(1, times), depth, outputs.value, prod(batch))


def _longest_chain(block: ir.Block, among: Collection[ir.Operation]) -> int:
    """Return the most of `among` that lie on one path through a block."""
    length: dict[ir.Value, int] = {}
    for view in block.operations:
        op = view.operation
        before = max((length.get(v, 0) for v in op.operands), default=0)
        for result in op.results:
            length[result] = before + (op in among)
    return max(length.values(), default=0)

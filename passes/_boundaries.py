"""Whether chains of elementwise ops join the kernel of a neighbour: priced, or as a plan wants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.cost.fusion import Chain, Rows, epilogue_pays, prologue_pays, rows_pay
from metadef.cost.op_flops import op_flops
from metadef.cost.pointwise_flops import pointwise_flops
from metadef.device import attribute as device
from metadef.diagnostics import location_text, near_names
from metadef.dialects.metadef.attributes import boolean, text
from metadef.dialects.metadef.shapes import shape_of
from metadef.symbolic import Dim, product

from ._buffers import byte_size, element_bytes, owner_of
from ._kernel_abi import least_values
from ._planned import has_plan, note_decision, wanted
from ._structure import chain_key

#: what a plan calls such decisions
KIND = "fusion"
CHOICES = FUSED, APART = "fused", "apart"
#: a function of so many operations is a polynomial, which takes registers for its terms
_POLYNOMIAL, _TERMS = 20, 8


@dataclass(frozen=True)
class Boundary:
    """A chain of elementwise ops beside the `anchor` of a kernel, at a `place` in it.

    `value` is what one hands to the other, `ops` are the chain's in order. The chain cannot join
    without what is `missing`, and must join where a reason is `bound`.
    """

    anchor: ir.Operation
    place: str
    ops: Sequence[ir.Operation]
    value: ir.Value
    stored: bool = False
    missing: str | None = None
    bound: str | None = None


class Boundaries:
    """The decisions for one module; a symbol counts as its least value.

    Without a `device.spec` nothing has a price, and what repeats no work is fused.
    """

    def __init__(self, module: ir.Operation) -> None:
        self.module = module
        self.spec = device.of(module) if device.ATTRIBUTE in module.attributes else None
        self.planned = has_plan(module)
        self._least = least_values(module)

    def joins(self, boundary: Boundary, by_cost: bool) -> bool:
        """Tell whether a chain joins the anchor's kernel: by cost where a plan wants nothing that
        can be. Note the decision, where there is one."""
        fused = by_cost and boundary.missing is None
        if not self.planned:
            return fused
        key = chain_key(boundary.place, [boundary.anchor, *boundary.ops])
        choices = wanted(self.module, KIND, key)
        refused = []
        for choice in choices:
            problem = _problem(boundary, choice)
            if problem is None:
                fused = choice == FUSED
                break
            refused.append(problem)
        if choices or (boundary.missing is None and boundary.bound is None):
            chosen = FUSED if fused else APART
            called = " ".join(_called(op) for op in self._in_order(boundary))
            anchor = boundary.anchor
            note_decision(self.module, KIND, key, anchor, chosen, refused, called)
        return fused

    def epilogue_pays(self, boundary: Boundary) -> bool:
        """Tell whether a chain costs less on the registers of the anchor's results."""
        return self.spec is None or epilogue_pays(self._chain(boundary, []), self.spec)

    def prologue_pays(self, boundary: Boundary, readers: Dim) -> bool:
        """Tell whether a chain costs less where an anchor reads it, `readers` times in all."""
        if self.spec is None:
            return True
        elements = self._value(product(shape_of(boundary.value).dims))
        times = max(1.0, self._value(readers) / max(1, elements))
        return prologue_pays(self._chain(boundary, boundary.ops), times, self.spec)

    def rows_pay(self, boundary: Boundary) -> bool:
        """Tell whether a chain costs less in the loops over the rows of a product."""
        anchor: Any = boundary.anchor
        lhs, rhs = anchor.operands
        if self.spec is None or boundary.value != lhs or boolean(anchor, "transpose_lhs"):
            return False
        *batch, rows, outputs = shape_of(anchor.results[0]).dims
        depth = shape_of(lhs).dims[-1]
        others = product(shape_of(rhs).dims[:-2])
        made = Rows(
            batch=self._value(product([*batch])),
            rows=self._value(rows),
            depth=self._value(depth),
            outputs=self._value(outputs),
            other_bytes=self._value(byte_size(rhs.type)) // max(1, self._value(others)),
        )
        return rows_pay(self._chain(boundary, boundary.ops), made, self.spec)

    def _chain(self, boundary: Boundary, computed: Sequence[ir.Operation]) -> Chain:
        """Return a chain's figures, with the arithmetic of those of its ops that are `computed`."""
        inside = {boundary.anchor, *boundary.ops}
        read = {v for op in boundary.ops for v in op.operands if owner_of(v) not in inside}
        element = shape_of(boundary.value).element
        flops = [self._value(op_flops(op)[1]) for op in computed]
        polynomial = any(
            op.name == "metadef.pointwise"
            and pointwise_flops(text(op, "fn"), str(element)) >= _POLYNOMIAL
            for op in boundary.ops
        )
        return Chain(
            bytes=self._value(byte_size(boundary.value.type)),
            read_bytes=sum(self._value(byte_size(v.type)) for v in read) if computed else 0,
            flops=sum(flops),
            registers=1 + len(read) + (_TERMS if polynomial else 0),
            element_bytes=element_bytes(element),
            stored=boundary.stored,
        )

    def _value(self, dim: Dim) -> int:
        return dim.evaluate({name: self._least.get(name, 1) for name in dim.symbols})

    def _in_order(self, boundary: Boundary) -> list[ir.Operation]:
        before = boundary.place.startswith("prologue")
        return [*boundary.ops, boundary.anchor] if before else [boundary.anchor, *boundary.ops]


def _problem(boundary: Boundary, choice: str) -> str | None:
    """Return why a choice cannot be, None where it can."""
    if choice not in CHOICES:
        problem = f"is none of {', '.join(CHOICES)}{near_names(choice, CHOICES)}"
    elif choice == FUSED and boundary.missing is not None:
        problem = f"needs {boundary.missing}"
    elif choice == APART and boundary.bound is not None:
        problem = f"cannot be: {boundary.bound}"
    else:
        return None
    name, place = boundary.anchor.name, location_text(boundary.anchor.location)
    return f"'{name}' op: {KIND} = \"{choice}\" {problem}; from {place}"


def _called(op: Any) -> str:
    name = str(op.name).removeprefix("metadef.")
    return text(op, "fn") if name == "pointwise" else name

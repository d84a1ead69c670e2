"""The work of a kernel: arithmetic by element type, bytes of each argument and result.

work = kernel_work(function)              # expressions of the symbols
work.evaluate({"B": 7}).flops             # operations on floats of one run
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from metadef import ir
from metadef.cost.op_flops import UNCOUNTED, op_flops
from metadef.dialects.metadef.shapes import shape_of
from metadef.symbolic import Dim, product

#: element types whose operations count as flops
FLOATS = ("f16", "bf16", "f32", "f64")
#: ops that read of their first operand as much as they give
_PARTIAL = ("metadef.slice", "metadef.take", "metadef.gather")
#: ops that hand on what they are given under other dims
_VIEWS = ("metadef.reshape", "metadef.transpose")


@dataclass(frozen=True)
class Amounts:
    """The work of one run: operations by element type, bytes of each argument and result."""

    operations: Mapping[str, int]
    reads: tuple[int, ...]
    writes: tuple[int, ...]

    @property
    def flops(self) -> int:
        """The operations on floats."""
        return sum(n for element, n in self.operations.items() if element in FLOATS)

    @property
    def bytes(self) -> int:
        """What one run moves when each argument and result crosses memory once."""
        return sum(self.reads) + sum(self.writes)


@dataclass(frozen=True)
class Work:
    """The work of a kernel as expressions of the symbols.

    `operations` are by element type; `uncounted` names the ops whose arithmetic nobody counts.
    """

    operations: Mapping[str, Dim]
    reads: tuple[Dim, ...]
    writes: tuple[Dim, ...]
    uncounted: tuple[str, ...] = ()

    @property
    def bytes(self) -> Dim:
        return sum((*self.reads, *self.writes), Dim.of(0))

    def evaluate(self, symbols: Mapping[str, int]) -> Amounts:
        """Return the work under values for the symbols."""
        return Amounts(
            {element: count.evaluate(symbols) for element, count in self.operations.items()},
            tuple(size.evaluate(symbols) for size in self.reads),
            tuple(size.evaluate(symbols) for size in self.writes),
        )


def kernel_work(function: ir.OpView) -> Work:
    """Return the work of a kernel: a function of metadef ops on tensors, before any lowering."""
    operations: dict[str, Dim] = {}
    uncounted = []
    for op in ir.operations(function):
        name = op.operation.name
        if not name.startswith("metadef."):
            continue
        if name.removeprefix("metadef.") in UNCOUNTED:
            uncounted.append(name.removeprefix("metadef."))
        element, count = op_flops(op)
        if count != Dim.of(0):
            operations[element] = operations.get(element, Dim.of(0)) + count
    block = ir.entry_block(function)
    results = block.operations[len(block.operations) - 1].operation.operands
    return Work(
        operations,
        tuple(_read_bytes(argument) for argument in block.arguments),
        tuple(tensor_bytes(value) for value in results),
        tuple(dict.fromkeys(uncounted)),
    )


def tensor_bytes(value: ir.Value) -> Dim:
    """Return the bytes of a dense tensor; an i1 takes one."""
    shape = shape_of(value)
    element = shape.element
    if isinstance(element, ir.quant.QuantizedType):
        element = element.storage_type
    return product(shape.dims) * (-(-int(element.width) // 8))


def _read_bytes(value: ir.Value) -> Dim:
    """Return how much of a tensor its users read, at most all of it.

    A lookup in a table reads the rows that it gives, not the table.
    """
    whole = tensor_bytes(value)
    parts = Dim.of(0)
    for use in value.uses:
        user = use.owner.operation
        if user.name in _PARTIAL and user.operands[0] == value:
            parts = parts + tensor_bytes(user.results[0])
        elif user.name in _VIEWS:
            parts = parts + _read_bytes(user.results[0])
        else:
            return whole
    return Dim.call("min", whole, parts)

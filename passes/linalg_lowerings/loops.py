"""Scalar `scf` loops over tensors, for what is sequential: scans, sorts, scatters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from metadef import ir

from . import scalar
from .kernel import Kernel
from .tensors import storage_type

#: loop index and carried values to the next carried values
Step = Callable[[ir.Value, list[ir.Value]], list[ir.Value]]
NestBody = Callable[[list[ir.Value], list[ir.Value]], list[ir.Value]]


def loop(
    kernel: Kernel,
    low: ir.Value,
    high: ir.Value,
    carried: Sequence[ir.Value],
    body: Step,
    step: ir.Value | None = None,
) -> list[ir.Value]:
    """Emit `for i in low..high step` that carries values; return the last ones."""
    stride = step if step is not None else kernel.size(1)
    for_op = ir.scf.ForOp(low, high, stride, list(carried))
    with ir.InsertionPoint(for_op.body):
        ir.scf.yield_(body(for_op.induction_variable, list(for_op.inner_iter_args)))
    return list(for_op.results)


def nest(
    kernel: Kernel, extents: Sequence[ir.Value], carried: Sequence[ir.Value], body: NestBody
) -> list[ir.Value]:
    """Emit one loop inside the other over `extents`, the last innermost."""

    def level(indices: list[ir.Value], values: list[ir.Value]) -> list[ir.Value]:
        depth = len(indices)
        if depth == len(extents):
            return body(indices, values)
        return loop(
            kernel,
            kernel.size(0),
            extents[depth],
            values,
            lambda i, inner: level([*indices, i], inner),
        )

    return level([], list(carried))


def rows(
    kernel: Kernel, extents: Sequence[ir.Value], carried: Sequence[ir.Value], body: NestBody
) -> list[ir.Value]:
    """Emit one loop over all points of `extents`; no point needs another, so threads share them."""
    total = kernel.size(1)
    for extent in extents:
        total = ir.arith.muli(total, extent)

    def row(number: ir.Value, values: list[ir.Value]) -> list[ir.Value]:
        at: list[ir.Value] = []
        for extent in reversed(extents[1:]):
            at.insert(0, ir.arith.remui(number, extent))
            number = ir.arith.divui(number, extent)
        return body([number, *at] if extents else [], values)

    results = loop(kernel, kernel.size(0), total, carried, row)
    results[0].owner.attributes["metadef.parallel"] = ir.UnitAttr.get()
    return results


def read(kernel: Kernel, tensor: ir.Value, at: Sequence[ir.Value], element: ir.Type) -> ir.Value:
    """Return an element of a tensor in compute type."""
    stored = ir.Operation.create(
        "tensor.extract", results=[storage_type(element)], operands=[tensor, *at]
    ).result
    return scalar.from_storage(kernel.scalars(), stored, element)


def write(
    kernel: Kernel, value: ir.Value, tensor: ir.Value, at: Sequence[ir.Value], element: ir.Type
) -> ir.Value:
    """Return `tensor` with an element, given in compute type, replaced."""
    stored = scalar.to_storage(kernel.scalars(), value, element)
    return ir.Operation.create(
        "tensor.insert", results=[tensor.type], operands=[stored, tensor, *at]
    ).result

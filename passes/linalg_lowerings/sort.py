"""Sorting: a bottom-up merge sort of each row, stable, with a row's worth of scratch."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer
from metadef.symbolic import Dim

from . import scalar
from .expression import Value
from .kernel import Kernel, compute_type, result_type, tensor_value
from .loops import loop, read, rows, write

_A = ir.arith


def lower_sort(kernel: Kernel, op: Any) -> list[Value]:
    """Copy each row and its indices, then merge runs of 1, 2, 4, ... until one is left."""
    dims, element = result_type(op)
    i64 = ir.IntegerType.get_signless(64)
    dim = integer(op, "dim")
    x = kernel.value(op.operation.operands[0])
    results = list(op.operation.results)
    values = kernel.plain_destination(results[0], dims, element)
    indices = kernel.plain_destination(results[1], dims, i64)
    row = Row(kernel, element, dim, kernel.size(dims[dim]), boolean(op, "descending"))
    passes = _passes(kernel, dims[dim])

    def sort_row(outer: list[ir.Value], tensors: list[ir.Value]) -> list[ir.Value]:
        def fill(i: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            at = row.at(outer, i)
            (value,) = kernel.evaluate([x.expr], {}, at)
            position = _A.index_cast(i64, i)
            return [
                write(kernel, value, carried[0], at, element),
                write(kernel, position, carried[1], at, i64),
            ]

        zero = kernel.size(0)
        scratch = [kernel.empty([dims[dim]], element), kernel.empty([dims[dim]], i64)]
        filled = loop(kernel, zero, row.length, tensors, fill)
        merged = loop(
            kernel, zero, passes, [*filled, *scratch], lambda p, c: row.merge_pass(outer, p, c)
        )
        return merged[: len(tensors)]

    extents = [kernel.size(d) for i, d in enumerate(dims) if i != dim]
    sorted_ = rows(kernel, extents, [values, indices], sort_row)
    return [tensor_value(sorted_[0], dims, element), tensor_value(sorted_[1], dims, i64)]


def _passes(kernel: Kernel, length: Dim) -> ir.Value:
    """Return the number of doublings from 1 to `length`: bits of length - 1."""
    if length.is_static:
        return kernel.size(max(length.value - 1, 0).bit_length())
    i64 = ir.IntegerType.get_signless(64)
    top = _A.maxsi(_A.subi(kernel.size(length), kernel.size(1)), kernel.size(0))
    zeros = ir.math.ctlz(_A.index_cast(i64, top))
    bits = _A.subi(kernel.constant(i64, 64), zeros)
    return _A.index_cast(ir.IndexType.get(), bits)


class Row:
    """How a row of the tensors is addressed and compared."""

    def __init__(
        self, kernel: Kernel, element: ir.Type, dim: int, length: ir.Value, descending: bool
    ) -> None:
        self.kernel, self.element, self.dim = kernel, element, dim
        self.length, self.descending = length, descending
        self.i64 = ir.IntegerType.get_signless(64)

    def at(self, outer: list[ir.Value], i: ir.Value) -> list[ir.Value]:
        return [*outer[: self.dim], i, *outer[self.dim :]]

    def before(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Answer whether a comes strictly before b; NaN counts as the greatest."""
        fn = "gt" if self.descending else "lt"
        result = scalar.compare(fn, a, b, scalar.is_unsigned(self.element))
        if not scalar.is_float(compute_type(self.element)):
            return result
        a_nan, b_nan = scalar.compare("ne", a, a), scalar.compare("ne", b, b)
        first, last = (a_nan, b_nan) if self.descending else (b_nan, a_nan)
        fresh = _A.andi(first, _A.xori(last, self.kernel.constant(last.type, 1)))
        return _A.ori(result, fresh)

    def merge_pass(
        self, outer: list[ir.Value], number: ir.Value, carried: list[ir.Value]
    ) -> list[ir.Value]:
        """Merge neighbouring runs of 2^number elements into scratch, then copy the row back."""
        zero, one = self.kernel.size(0), self.kernel.size(1)
        width = _A.shli(one, number)
        values, indices, *scratch = carried
        scratch = loop(
            self.kernel,
            zero,
            self.length,
            scratch,
            lambda start, s: self.merge(outer, start, width, values, indices, s),
            step=_A.addi(width, width),
        )

        def back(i: ir.Value, tensors: list[ir.Value]) -> list[ir.Value]:
            at = self.at(outer, i)
            value = read(self.kernel, scratch[0], [i], self.element)
            position = read(self.kernel, scratch[1], [i], self.i64)
            return [
                write(self.kernel, value, tensors[0], at, self.element),
                write(self.kernel, position, tensors[1], at, self.i64),
            ]

        return [*loop(self.kernel, zero, self.length, [values, indices], back), *scratch]

    def merge(
        self,
        outer: list[ir.Value],
        start: ir.Value,
        width: ir.Value,
        values: ir.Value,
        indices: ir.Value,
        scratch: list[ir.Value],
    ) -> list[ir.Value]:
        """Merge the runs at `start` and `start + width` into scratch; the left one wins ties."""
        one = self.kernel.size(1)
        middle = _A.minsi(_A.addi(start, width), self.length)
        end = _A.minsi(_A.addi(middle, width), self.length)
        last = _A.subi(self.length, one)

        def step(k: ir.Value, carried: list[ir.Value]) -> list[ir.Value]:
            left, right, *tensors = carried
            in_right = scalar.compare("lt", right, end)
            at_left, at_right = (self.at(outer, _A.minsi(i, last)) for i in (left, right))
            a = read(self.kernel, values, at_left, self.element)
            b = read(self.kernel, values, at_right, self.element)
            left_done = scalar.compare("ge", left, middle)
            wins = _A.ori(self.before(b, a), left_done)
            take_right = _A.andi(in_right, wins)
            i = read(self.kernel, indices, at_left, self.i64)
            j = read(self.kernel, indices, at_right, self.i64)
            value = scalar.select(take_right, b, a)
            position = scalar.select(take_right, j, i)
            return [
                scalar.select(take_right, left, _A.addi(left, one)),
                scalar.select(take_right, _A.addi(right, one), right),
                write(self.kernel, value, tensors[0], [k], self.element),
                write(self.kernel, position, tensors[1], [k], self.i64),
            ]

        return loop(self.kernel, start, end, [start, middle, *scratch], step)[2:]

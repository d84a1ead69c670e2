"""The tables that the native loop reads, laid out for given symbol values and addresses.

One array of 64-bit words holds the job, the records, the symbols and the pointers, in this order,
and the tickets; dispatch.ll says what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from metadef.codegen.kernel import CompiledKernel
from metadef.symbolic import Dim

from .back_graph import Arena, BackGraph, Buffer, Input, Output, Weight
from .dependences import ALIGNMENT, Access, aligned, barriers_after

_WAIT, _SERIAL = 1, 2
_JOB_WORDS, _RECORD_WORDS, _WORD = 7, 5, 8
# words from one counter of tickets to the next: a cache line
_TICKET = ALIGNMENT // _WORD
_TIMES = 4  # word of the job


@dataclass
class Table:
    """A job ready to run once the pointers of inputs and outputs are in `words`.

    `result_shapes` has None for a result that has the shape of the output that it is.
    """

    words: memoryview
    address: int
    outputs: tuple[tuple[tuple[int, ...], torch.dtype], ...]
    result_shapes: tuple[tuple[int, ...] | None, ...]
    storage: np.ndarray

    def set_times(self, address: int) -> None:
        """Have each thread write its row of times to an array at `address` (0: none)."""
        self.words[_TIMES] = address


class Layout:
    """What is the same in every table of a program."""

    def __init__(
        self,
        graph: BackGraph,
        kernels: Mapping[str, CompiledKernel],
        addresses: Mapping[str, int],
        weights: Mapping[str, torch.Tensor],
        threads: int,
    ) -> None:
        self.graph = graph
        self.threads = threads
        steps = graph.steps
        used = [kernels[step.kernel] for step in steps]
        scratch = [_scratch(k, s.sizes, threads) for s, k in zip(steps, used, strict=True)]
        self.scratch_sizes = tuple(dict.fromkeys(scratch))
        #: for each symbol of each step's kernel: the program's symbol, or the step's own value
        self._order = [
            step.sizes.get(name, name)
            for step, kernel in zip(steps, used, strict=True)
            for name in kernel.symbols
        ]
        self.symbols = _symbols(graph, self._order, self.scratch_sizes)

        self._pointers_at = _JOB_WORDS + _RECORD_WORDS * len(steps) + len(self._order)
        buffers = [b for step in steps for b in (*step.reads, *step.writes)]
        # A cache line is left, so that no pointer is in one with a counter.
        self._tickets_at = self._pointers_at + len(buffers) + _TICKET
        tickets = threads * sum(kernel.tickets for kernel in used)
        words = np.zeros(self._tickets_at + _TICKET * tickets, np.int64)
        words[1], words[3], words[6] = len(steps), threads, tickets
        waits = barriers_after(
            [Access.of(step, bool(size.terms)) for step, size in zip(steps, scratch, strict=True)]
        )
        records = words[_JOB_WORDS : _JOB_WORDS + _RECORD_WORDS * len(steps)].reshape(
            -1, _RECORD_WORDS
        )
        pointer, symbol = self._pointers_at, _JOB_WORDS + _RECORD_WORDS * len(steps)
        ticket = self._tickets_at
        for i, (step, kernel) in enumerate(zip(steps, used, strict=True)):
            flags = (_WAIT if waits[i] else 0) | (_SERIAL if kernel.serial else 0)
            records[i] = (
                addresses[kernel.symbol],
                pointer * _WORD,
                symbol * _WORD,
                flags,
                ticket * _WORD,
            )
            pointer += len(step.reads) + len(step.writes)
            symbol += len(kernel.symbols)
            ticket += _TICKET * threads * kernel.tickets
        self._words = words
        self._place(buffers, weights)

    def _place(self, buffers: Sequence[Buffer], weights: Mapping[str, torch.Tensor]) -> None:
        """Fill in the weights' pointers; note where the others' go."""
        graph = self.graph
        inputs: list[list[int]] = [[] for _ in graph.inputs]
        outputs: list[list[int]] = [[] for _ in graph.outputs]
        arena: list[tuple[int, Dim]] = []
        for at, buffer in enumerate(buffers, self._pointers_at):
            if isinstance(buffer, Weight):
                self._words[at] = weights[buffer.name].data_ptr()
            elif isinstance(buffer, Arena):
                arena.append((at, buffer.offset))
            elif isinstance(buffer, Input):
                inputs[buffer.number].append(at)
            else:
                outputs[buffer.number].append(at)
        self.input_slots = tuple(tuple(slots) for slots in inputs)
        self.output_slots = tuple(tuple(slots) for slots in outputs)
        self._arena_slots = np.array([at for at, _ in arena], np.int64)
        # An offset is a sum of coefficients times monomials: one product of matrices for them all.
        monomials = dict.fromkeys(m for _, offset in arena for m, _ in offset.terms)
        columns = {monomial: i for i, monomial in enumerate(monomials)}
        self._monomials = tuple(Dim(((m, 1),)) for m in monomials)
        self._coefficients = np.zeros((len(arena), len(columns)), np.int64)
        for row, (_, offset) in enumerate(arena):
            for monomial, coefficient in offset.terms:
                self._coefficients[row, columns[monomial]] = coefficient

    def table(self, values: Mapping[str, int], arena: int, scratch: int) -> Table:
        """Return the table for symbol `values`, an arena and scratch memory at these addresses."""
        words = self._words.copy()
        address: int = words.ctypes.data
        count = int(words[1])
        words[0], words[2] = address + _JOB_WORDS * _WORD, scratch
        words[5] = address + self._tickets_at * _WORD
        symbols_at = _JOB_WORDS + _RECORD_WORDS * count
        records = words[_JOB_WORDS:symbols_at].reshape(-1, _RECORD_WORDS)
        records[:, 1:3] += address
        records[:, 4] += address
        words[symbols_at : self._pointers_at] = [
            values[symbol] if isinstance(symbol, str) else symbol for symbol in self._order
        ]
        monomials = np.array([m.evaluate(values) for m in self._monomials], np.int64)
        words[self._arena_slots] = arena + self._coefficients @ monomials
        graph = self.graph
        return Table(
            words=words.data,
            address=address,
            outputs=tuple((_shape(t.dims, values), t.dtype) for t in graph.outputs),
            result_shapes=tuple(
                None
                if isinstance(buffer, Output) and graph.outputs[buffer.number].dims == t.dims
                else _shape(t.dims, values)
                for buffer, t in graph.results
            ),
            storage=words,
        )


def _scratch(kernel: CompiledKernel, sizes: Mapping[str, int], threads: int) -> Dim:
    """Return the bytes of scratch memory that a run of the kernel touches."""
    own = aligned(Dim.of(kernel.thread_scratch)) * threads
    shared = kernel.scratch.substitute(sizes)
    return aligned(shared) + own if own.terms else shared


def _symbols(
    graph: BackGraph, of_kernels: Sequence[str | int], scratch: Sequence[Dim]
) -> tuple[str, ...]:
    """Return the names of all symbols that a table depends on."""
    names = {symbol for symbol in of_kernels if isinstance(symbol, str)}
    for size in (*scratch, graph.arena):
        names |= size.symbols
    for tensor in (*graph.outputs, *(t for _, t in graph.results)):
        for dim in tensor.dims:
            names |= dim.symbols
    for buffer in graph.arena_ranges():
        names |= buffer.offset.symbols
    return tuple(sorted(names))


def _shape(dims: Sequence[Dim], values: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(dim.evaluate(values) for dim in dims)

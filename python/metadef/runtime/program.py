"""A compiled model in this process: the back graph, run by one native call.

program = build_program(plan, kernels, weights, threads=2)
outputs = program([x], {"B": 4})
"""

from __future__ import annotations

import os
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch

from metadef.codegen.kernel import CompiledKernel
from metadef.diagnostics import InputError, MetadefError
from metadef.symbolic import Dim

from .back_graph import Arena, BackGraph, Input, Output, Plan, Tensor
from .block_memory import BlockMemory
from .jit import Library, dispatch_loop
from .large_pages import memory
from .output_pool import OutputPool
from .tables import Layout, Table

#: tables kept for each context; one is a few words for each kernel of the program
_TABLES_KEPT = 64

#: [threads, 2 * steps + 1], in ns of the monotonic clock: when a thread came to each step and was
#: through with it, and the end; a row of zeros for a thread that did not take part
Stamps = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class MemoryUse:
    """Bytes: intermediate tensors without and with reuse, scratch, weights and @init's results."""

    arena_before: Dim
    arena: Dim
    scratch: Dim
    constants: int


class _Process:
    """Which process this is, counted from the first that imported this module."""

    number = 0
    is_forked = False

    @classmethod
    def note_fork(cls) -> None:
        cls.number += 1
        cls.is_forked = True


os.register_at_fork(after_in_child=_Process.note_fork)


def _bytes(count: int) -> torch.Tensor:
    """Return memory for a context, which outlives this call and what it runs under."""
    found = memory(count)
    if count and not found.data_ptr():
        raise _no_memory(found)
    return found


class Pool(Protocol):
    """Where the memory of outputs comes from."""

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor: ...


class _Context:
    """The memory of one call at a time: arena, scratch memory, outputs, tables that point there."""

    def __init__(self, outputs: Pool) -> None:
        self.arena = _bytes(0)
        self.scratch = _bytes(0)
        self.outputs = outputs
        self.tables: OrderedDict[tuple[int, ...], Table] = OrderedDict()

    def table(self, layout: Layout, key: tuple[int, ...]) -> Table:
        """Return the table for the symbol values `key`."""
        table = self.tables.get(key)
        if table is None:
            values = dict(zip(layout.symbols, key, strict=True))
            self._grow(layout, values)
            table = layout.table(values, self.arena.data_ptr(), self.scratch.data_ptr())
            self.tables[key] = table
            if len(self.tables) > _TABLES_KEPT:
                self.tables.popitem(last=False)
        elif len(self.tables) > 1:
            self.tables.move_to_end(key)
        return table

    def _grow(self, layout: Layout, values: Mapping[str, int]) -> None:
        arena = layout.graph.arena.evaluate(values)
        scratch = max((s.evaluate(values) for s in layout.scratch_sizes), default=0)
        if arena > self.arena.numel() or scratch > self.scratch.numel():
            self.tables.clear()  # they point to the memory that goes
        if arena > self.arena.numel():
            self.arena = _bytes(arena)
        if scratch > self.scratch.numel():
            self.scratch = _bytes(scratch)


class Program:
    """A function of the back graph, ready to run; calls from several threads are safe."""

    def __init__(
        self,
        graph: BackGraph,
        kernels: Mapping[str, CompiledKernel],
        library: Library,
        weights: Mapping[str, torch.Tensor],
        threads: int,
        new_pool: Callable[[], Pool] | None = None,
    ) -> None:
        """`new_pool` makes the pool of outputs of calls that do not run at the same time."""
        self.graph = graph
        self._new_pool = new_pool or partial(OutputPool, 2 * len(graph.outputs))
        self._kernels = kernels
        self._library = library  # the code that the tables call
        self._weights = {name: _weight(name, weights, t) for name, t in graph.weights.items()}
        self._layout = self._new_layout(1 if _Process.is_forked else threads)
        self._process = _Process.number
        self._run = dispatch_loop()
        self._contexts: list[_Context] = []
        self._outputs_are_results = [b for b, _ in graph.results] == [
            Output(i) for i in range(len(graph.outputs))
        ] and all(t == o for (_, t), o in zip(graph.results, graph.outputs, strict=True))

    @property
    def threads(self) -> int:
        """The number of threads that a call uses."""
        return self._layout.threads

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of the symbols whose values a call needs."""
        return self._layout.symbols

    @property
    def bytes(self) -> MemoryUse:
        """The program's memory, apart from inputs and outputs; arena and scratch for each call."""
        scratch = Dim.of(0)
        for size in self._layout.scratch_sizes:
            scratch = Dim.call("max", scratch, size)
        constants = {t.data_ptr(): t.nbytes for t in self._weights.values()}
        graph = self.graph
        return MemoryUse(graph.arena_before, graph.arena, scratch, sum(constants.values()))

    def __call__(
        self, inputs: Sequence[torch.Tensor], symbols: Mapping[str, int] | None = None
    ) -> list[torch.Tensor]:
        """Run the program on inputs of the compiled dtypes and dims; return fresh tensors.

        A result that is an input or a weight (under a reshape) shares its memory, as in torch.
        `symbols` has the value of each symbol.

        Raises:
            InputError: an input is not in memory.
        """
        if self._process != _Process.number:
            self._enter_forked_process()
        layout = self._layout
        key = tuple([symbols[name] for name in layout.symbols]) if symbols else ()
        contexts = self._contexts
        try:
            context = contexts.pop()  # atomic, as is append
        except IndexError:
            context = _Context(self._new_pool())
        try:
            table = context.table(layout, key)
            inputs, outputs = _fill(layout, table, inputs, context.outputs)
            self._run(table.address)
        finally:
            contexts.append(context)
        if self._outputs_are_results:
            return outputs
        return self._results(table, inputs, outputs)

    def timed(
        self, inputs: Sequence[torch.Tensor], symbols: Mapping[str, int] | None = None
    ) -> tuple[list[torch.Tensor], Stamps]:
        """Run the program as a call does, with the clock read around each step by each thread.

        Raises:
            InputError: an input is not in memory.
        """
        if self._process != _Process.number:
            self._enter_forked_process()
        layout = self._layout
        stamps = np.ones((self.threads, 2 * len(self.graph.steps) + 1), np.int64)
        stamps.fill(0)  # by writing: a page that is first touched by a thread costs it time
        try:
            context = self._contexts.pop()
        except IndexError:
            context = _Context(self._new_pool())
        table = context.table(layout, tuple((symbols or {})[name] for name in layout.symbols))
        try:
            inputs, outputs = _fill(layout, table, inputs, context.outputs)
            table.set_times(stamps.ctypes.data)
            self._run(table.address)
        finally:
            table.set_times(0)
            self._contexts.append(context)
        return self._results(table, inputs, outputs), stamps

    def _enter_forked_process(self) -> None:
        """Go on with one thread: the parent's OpenMP threads are not here, and are waited for."""
        if self.threads > 1:
            warnings.warn(
                "a compiled model runs with one thread in a forked process, where OpenMP has lost "
                "its threads; start processes with the method 'spawn' instead",
                RuntimeWarning,
                stacklevel=4,
            )
        self._contexts = []  # some may be in use by the parent's other threads, which are not here
        self._layout = self._new_layout(1)
        self._process = _Process.number

    def _new_layout(self, threads: int) -> Layout:
        addresses = {k.symbol: self._library.address(k.symbol) for k in self._kernels.values()}
        return Layout(self.graph, self._kernels, addresses, self._weights, threads)

    def _results(
        self, table: Table, inputs: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        found = []
        for (buffer, _), shape in zip(self.graph.results, table.result_shapes, strict=True):
            if isinstance(buffer, Input):
                tensor = inputs[buffer.number]
            elif isinstance(buffer, Output):
                tensor = outputs[buffer.number]
            else:
                assert not isinstance(buffer, Arena), "a result in the arena"
                tensor = self._weights[buffer.name]
            if shape is not None and tensor.shape != shape:
                tensor = tensor.view(shape)
            found.append(tensor)
        return found


def build_program(
    plan: Plan,
    kernels: Mapping[str, CompiledKernel],
    weights: Mapping[str, torch.Tensor],
    threads: int,
) -> Program:
    """Load the kernels of a plan, run its `init`, and return its `main`.

    Raises:
        MetadefError: a weight is missing, or is not a CPU tensor of the declared dims and dtype.
    """
    assert threads >= 1, f"{threads} threads"
    objects = {kernel.symbol: kernel.code for kernel in kernels.values()}
    library = Library(objects.values())
    known = dict(weights)
    if plan.init is not None:
        new_pool = partial(BlockMemory, plan.init.outputs)
        run_once = Program(plan.init, kernels, library, weights, threads, new_pool)
        known.update(zip(plan.made, run_once([]), strict=True))
    return Program(plan.main, kernels, library, known, threads)


def _fill(
    layout: Layout, table: Table, inputs: Sequence[torch.Tensor], pool: Pool
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Write the pointers of inputs and new outputs into the table; return both to be kept.

    Raises:
        InputError: one of them has no memory.
    """
    words = table.words
    dense = [t if t.is_contiguous() else t.contiguous() for t in inputs]
    outputs = [pool.take(shape, dtype) for shape, dtype in table.outputs]
    for tensors, places in ((dense, layout.input_slots), (outputs, layout.output_slots)):
        for tensor, slots in zip(tensors, places, strict=True):
            try:
                address = tensor.data_ptr()
            except RuntimeError as error:  # a tensor that torch.func made while it transforms
                raise _no_memory(tensor) from error
            if not address and tensor.numel():
                raise _no_memory(tensor)
            for slot in slots:
                words[slot] = address
    return dense, outputs


def _no_memory(tensor: torch.Tensor) -> InputError:
    return InputError(
        f"a compiled model runs on tensors in memory, got one of shape {list(tensor.shape)} that "
        "has none (its storage was freed, or torch.func or a mode such as FakeTensorMode is active)"
    )


def _weight(name: str, weights: Mapping[str, torch.Tensor], declared: Tensor) -> torch.Tensor:
    """Return the weight as a dense CPU tensor."""
    if name not in weights:
        raise MetadefError(f"weight '{name}': expected a tensor in the weight store, got none")
    tensor = weights[name].detach()
    shape = tuple(dim.value for dim in declared.dims)
    if (
        tuple(tensor.shape) != shape
        or tensor.dtype != declared.dtype
        or tensor.device.type != "cpu"
    ):
        raise MetadefError(
            f"weight '{name}': expected {declared.dtype} {list(shape)} on cpu, "
            f"got {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
        )
    return tensor.contiguous()

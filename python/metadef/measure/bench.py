"""Runs a micro-benchmark as a program of one step, with the clock of the native loop."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from metadef import ir
from metadef.codegen.build import target_of
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.llvm import llvm_ir, object_code
from metadef.device.spec import DeviceSpec
from metadef.pass_runner import PassRunner
from metadef.pipeline import parse_passes
from metadef.runtime.back_graph import BackGraph, Input, Step, Tensor
from metadef.runtime.host import this_device
from metadef.runtime.jit import Library
from metadef.runtime.program import Program
from metadef.symbolic import Dim

from .kernel_text import Kernel

#: what a round takes, in ns: long beside the clock's own reading, short beside a time slice
_ROUND_NS = 500_000
_MOST_REPEATS = 10**9
_NOTHING = Kernel("nothing", "func.func @nothing(%tid: index, %n: index) { return }", ())


@dataclass(frozen=True)
class Effort:
    """How often to measure: rounds after warm-up; again, so often at most, while noisy."""

    warm_up: int = 3
    rounds: int = 20
    tries: int = 3
    #: what counts as noisy
    spread: float = 0.1


@dataclass(frozen=True)
class Times:
    """The ns of one repetition: that of the best round, and (P90 - P10) / median over rounds.

    The best, because other work on the machine only ever adds to a time.
    """

    best: float
    spread: float
    rounds: int


def compile_kernels(kernels: Sequence[Kernel], spec: DeviceSpec) -> dict[str, CompiledKernel]:
    """Compile micro-benchmarks through the last stages of our own code generation.

    Raises:
        MetadefError: the device has no back end.
    """
    compiled = {}
    with ir.make_context(), ir.Location.unknown():
        for kernel in kernels:
            code = object_code(kernel_ir(kernel), target_of(spec))
            compiled[kernel.name] = CompiledKernel(kernel.name, kernel.name, code, kernel.symbols)
    return compiled


@functools.cache
def meeting_point() -> CompiledKernel:
    """Return a kernel that does nothing, for this machine: after it all threads are there."""
    return compile_kernels([_NOTHING], this_device())[_NOTHING.name]


def kernel_ir(kernel: Kernel) -> str:
    """Return the LLVM IR of a micro-benchmark, in the current context."""
    module = ir.Module.parse(kernel.text)
    PassRunner().run(module, parse_passes("expand-math,lower-to-llvm"))
    return llvm_ir(module)


class Bench:
    """Compiled micro-benchmarks, loaded."""

    def __init__(
        self, kernels: Sequence[Kernel], spec: DeviceSpec, effort: Effort | None = None
    ) -> None:
        self._kernels = compile_kernels([*kernels, _NOTHING], spec)
        self._library = Library(kernel.code for kernel in self._kernels.values())
        self._effort = effort or Effort()

    def times(
        self,
        name: str,
        tensors: Sequence[torch.Tensor],
        symbols: Mapping[str, int],
        threads: int,
        repeats: int | None = None,
    ) -> Times:
        """Time a benchmark on `tensors`, which it may write to; what is noisy is measured again.

        `symbols` are its symbols but `R`, which is `repeats`, or what takes one thread long enough.
        """
        effort = self._effort
        run = _Run(self._program(name, tensors, threads), tensors, symbols)
        if repeats is None:
            repeats = _repeats(_Run(self._program(name, tensors, 1), tensors, symbols))
        best, spread, rounds = math.inf, math.inf, 0
        while rounds < effort.tries * effort.rounds and spread > effort.spread:
            for _ in range(effort.warm_up):
                run(repeats)
            ns = [run(repeats) / repeats for _ in range(effort.rounds)]
            low, middle, high = np.percentile(ns, [10, 50, 90])
            best, spread = min(best, *ns), min(spread, float((high - low) / middle))
            rounds += effort.rounds
        return Times(best, spread, rounds)

    def _program(self, name: str, tensors: Sequence[torch.Tensor], threads: int) -> Program:
        """Return a program that brings the threads together and then runs the benchmark."""
        inputs = tuple(Tensor(tuple(Dim.of(n) for n in t.shape), t.dtype) for t in tensors)
        buffers = tuple(Input(i) for i in range(len(tensors)))
        # As if it wrote what the benchmark reads: between the two there is a barrier.
        meet = Step(_NOTHING.name, (), buffers, "")
        none = Dim.of(0)
        steps = (meet, Step(name, buffers, (), ""))
        graph = BackGraph(inputs, steps, (), (), {}, none, none)
        return Program(graph, self._kernels, self._library, {}, threads)


@dataclass(frozen=True)
class _Run:
    """One timed run: from the first thread's start to the last one's end, in ns."""

    program: Program
    tensors: Sequence[torch.Tensor]
    symbols: Mapping[str, int]

    def __call__(self, repeats: int) -> int:
        _, stamps = self.program.timed(self.tensors, {**self.symbols, "R": repeats})
        there = stamps[stamps[:, 0] > 0]
        return int(there[:, 3].max() - there[:, 2].min())


def _repeats(run: _Run) -> int:
    """Return how many repetitions make a round, by the least of a few runs each time."""
    repeats = 1
    while (ns := min(run(repeats) for _ in range(3))) < _ROUND_NS // 2:
        assert repeats < _MOST_REPEATS, "a micro-benchmark that LLVM optimised away"
        # A short run says little of how long one repetition takes.
        repeats = int(repeats * min(10.0, _ROUND_NS / max(ns, 1))) + 1
    return max(1, round(repeats * _ROUND_NS / ns))

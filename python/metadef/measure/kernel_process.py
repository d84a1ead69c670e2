"""The process that runs kernels to be measured, `python -m metadef.measure.kernel_process`.

A request's header describes a run (`alone._ask` writes it), the body has kernels one behind the
other. The answer has an outcome for each, or `error`.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.protocol import IDLE_EXIT, STAGE_MARK, Message, receive, send
from metadef.diagnostics import MetadefError
from metadef.runtime.back_graph import BackGraph, Input, Step, Tensor
from metadef.runtime.block_memory import BlockMemory
from metadef.runtime.jit import Library
from metadef.runtime.program import Program
from metadef.symbolic import Dim

from .alone import KernelRun, Outcome, Rounds

#: a process without a request for this many seconds gives its memory back
IDLE_SECONDS = 120.0
#: What a round of one kernel takes, in ns: long beside what Python does between the rounds, which
#: leaves caches and branch predictors to a short kernel as no other kernel would.
_ROUND_NS = 100_000
_MOST_STEPS = 200
#: What goes over all copies once takes at most so many ns: a kernel that computes for longer hardly
#: waits for its data.
_MOST_RUN_NS = 20e6
#: nothing is measured again after so many seconds
_PATIENCE_SECONDS = 4.0
#: integers are indices more often than not, and small ones are inside of most tensors
_MOST_INDEX = 2


def main() -> None:
    """Answer requests on standard input."""
    requests = sys.stdin.buffer
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        if not select.select([requests], [], [], IDLE_SECONDS)[0]:
            sys.exit(IDLE_EXIT)
        if (request := receive(requests)) is None:
            return
        send(answers, _answer(request))


def _answer(request: Message) -> Message:
    header = request.header
    reads, writes = (tuple(map(_tensor, header[key])) for key in ("reads", "writes"))
    run = KernelRun(reads, writes, header["symbols"], header["copies"])
    meet, *kernels = _kernels(request.body, header["sizes"])
    try:
        found = measure(meet, kernels, run, header["threads"], Rounds(**header["rounds"]))
    except MetadefError as error:
        return Message({"error": str(error)})
    return Message({"outcomes": [vars(outcome) for outcome in found]})


def measure(
    meet: CompiledKernel,
    kernels: Sequence[CompiledKernel],
    run: KernelRun,
    threads: int,
    rounds: Rounds,
) -> list[Outcome]:
    """Measure kernels in this process; see `alone.measure_alone`. `meet` does nothing, before each
    run of them: then all threads are there."""
    began = time.monotonic()
    run = _in_time(meet, kernels[0], run, threads)
    tensors = _filled(run)
    results = tensors[len(run.reads) : len(run.reads) + len(run.writes)]
    timed: list[Callable[[], float]] = []
    expected: list[torch.Tensor] = []
    differences = []
    for kernel in kernels:
        _note_run(kernel)
        once = _timed(meet, kernel, run, tensors, threads)
        for result in results:
            result.zero_()
        once()
        expected = expected or [result.clone() for result in results]
        differences.append(_difference(results, expected))
        repeats = _repeats(once(), run)
        timed.append(_timed(meet, kernel, run, tensors, threads, repeats))
    times: list[list[float]] = [[] for _ in kernels]
    for _ in range(rounds.tries):
        for ns, more in zip(times, _interleaved(timed, rounds), strict=True):
            ns += more
        outcomes = [_outcome(ns, rounds, d) for ns, d in zip(times, differences, strict=True)]
        quiet = all(outcome.spread <= rounds.spread for outcome in outcomes)
        if quiet or time.monotonic() - began > _PATIENCE_SECONDS:
            break
    return outcomes


def _note_run(kernel: CompiledKernel) -> None:
    """Say what runs next, for who asks why the process died."""
    print(f"{STAGE_MARK}run {kernel.name}", file=sys.stderr, flush=True)


def _in_time(
    meet: CompiledKernel, kernel: CompiledKernel, run: KernelRun, threads: int
) -> KernelRun:
    """Return the run with as many of its copies as a kernel goes over in time."""
    if run.copies == 1:
        return run
    _note_run(kernel)
    one = replace(run, copies=1)
    once = _timed(meet, kernel, one, _filled(one), threads)
    once()
    return replace(run, copies=max(1, min(run.copies, int(_MOST_RUN_NS // max(once(), 1)))))


def _interleaved(timed: Sequence[Callable[[], float]], rounds: Rounds) -> list[list[float]]:
    """Return the ns of each kernel in each round; whose turn is first goes around."""
    times: list[list[float]] = [[] for _ in timed]
    for n in range(rounds.warm_up + rounds.rounds):
        for i in range(len(timed)):
            k = (n + i) % len(timed)
            ns = timed[k]()
            if n >= rounds.warm_up:
                times[k].append(ns)
    return times


def _outcome(ns: Sequence[float], rounds: Rounds, difference: float) -> Outcome:
    """Return the figures of the fastest rounds: others' work on the machine only adds to a time."""
    fastest = sorted(ns)[: rounds.rounds]
    low, middle, high = (float(q) for q in np.percentile(fastest, [10, 50, 90]))
    return Outcome(middle, high, min(ns), (high - low) / middle, len(ns), difference)


def _timed(
    meet: CompiledKernel,
    kernel: CompiledKernel,
    run: KernelRun,
    tensors: Sequence[torch.Tensor],
    threads: int,
    repeats: int = 1,
) -> Callable[[], float]:
    """Return a function that runs the kernel on each copy in turn, `repeats` times, by one native
    call, and returns the median ns of a run: from the first thread's start, when all are there, to
    the last one's end."""
    width = len(run.reads) + len(run.writes)
    steps = []
    for copy in [*range(run.copies)] * repeats:
        buffers = tuple(Input(copy * width + i) for i in range(width))
        steps.append(Step(meet.name, (), buffers, ""))
        steps.append(Step(kernel.name, buffers, (), ""))
    inputs = (*run.reads, *run.writes) * run.copies
    graph = BackGraph(inputs, tuple(steps), (), (), {}, Dim.of(0), Dim.of(0))
    kernels = {meet.name: meet, kernel.name: kernel}
    program = Program(graph, kernels, Library(k.code for k in kernels.values()), {}, threads)

    def once() -> float:
        _, stamps = program.timed(tensors, run.symbols)
        there = stamps[stamps[:, 0] > 0]
        starts, ends = there[:, 2:-1:4].min(axis=0), there[:, 3:-1:4].max(axis=0)
        return float(np.median(ends - starts))

    return once


def _repeats(ns: float, run: KernelRun) -> int:
    """Return how often a round goes over all copies, when a run takes `ns`."""
    of_time = int(_ROUND_NS // max(ns * run.copies, 1.0))
    return max(1, min(of_time, _MOST_STEPS // run.copies))


def _kernels(body: bytes, sizes: Sequence[int]) -> Iterator[CompiledKernel]:
    """Yield what does nothing, then the kernels by their numbers."""
    names = ["meet", *(f"kernel{number}" for number in range(len(sizes) - 1))]
    at = 0
    for name, size in zip(names, sizes, strict=True):
        yield CompiledKernel.from_bytes(name, body[at : at + size])
        at += size


def _tensor(data: dict[str, Any]) -> Tensor:
    return Tensor(tuple(map(Dim.of, data["dims"])), getattr(torch, data["dtype"]))


def _filled(run: KernelRun) -> list[torch.Tensor]:
    """Return the tensors of all copies, in memory as a program's, with values that no function
    minds: floats in 0.1 to 1, small integers."""
    declared = (*run.reads, *run.writes) * run.copies
    memory = BlockMemory(declared)
    tensors = [memory.take(tuple(d.value for d in t.dims), t.dtype) for t in declared]
    for tensor in tensors:
        if tensor.dtype.is_floating_point:
            tensor.copy_(torch.rand(tensor.shape).mul_(0.9).add_(0.1))
        else:
            tensor.copy_(torch.randint(0, _MOST_INDEX, tensor.shape))
    return tensors


def _difference(found: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> float:
    """Return the greatest difference of any element, relative to the largest of its tensor."""
    worst = 0.0
    for x, y in zip(found, expected, strict=True):
        if not y.numel():
            continue
        a, b = x.double(), y.double()
        same = (a == b) | (a.isnan() & b.isnan())
        scale = b.nan_to_num(0.0, 0.0, 0.0).abs().max().clamp(min=1e-30)
        apart = torch.where(same, 0.0, (a - b).abs().nan_to_num(float("inf"))) / scale
        worst = max(worst, float(apart.max()))
    return worst


if __name__ == "__main__":
    main()

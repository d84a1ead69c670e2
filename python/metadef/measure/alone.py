"""Kernels measured alone, in a process of their own: a crash or a hang there costs one answer.

outcomes = measure_alone([default, other], run, threads=2)
outcomes[1].ns, outcomes[1].difference
"""

from __future__ import annotations

import atexit
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.protocol import Message
from metadef.codegen.workers import WorkerCrash, Workers
from metadef.runtime.back_graph import Tensor

from .bench import meeting_point

#: a request that takes longer than this many seconds holds a kernel that does not end
LIMIT_SECONDS = 60.0


@dataclass(frozen=True)
class KernelRun:
    """What one run of a kernel takes: static tensors, and the values of its symbols.

    With several `copies` of the tensors the runs go over one after the other, so that each finds
    its data as far away as a model does that has touched other things meanwhile.
    """

    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    symbols: Mapping[str, int]
    copies: int = 1

    @property
    def bytes(self) -> int:
        """The bytes of one copy."""
        return sum(t.bytes.value for t in (*self.reads, *self.writes))


@dataclass(frozen=True)
class Rounds:
    """How often to measure: rounds after warm-up, and as many again, so often at most, while the
    fastest of them all, as many as at first, spread over more than `spread`."""

    warm_up: int = 3
    rounds: int = 20
    tries: int = 8
    spread: float = 0.1


@dataclass(frozen=True)
class Outcome:
    """What a kernel took, in ns: median, P90 and least over the fastest rounds.

    `spread` is (P90 - P10) / median. `difference` is the greatest of its results from the first
    kernel's, relative to the largest of these. `failed` says why there are no figures.
    """

    ns: float = 0.0
    p90_ns: float = 0.0
    least_ns: float = 0.0
    spread: float = 0.0
    rounds: int = 0
    difference: float = 0.0
    failed: str | None = None


def measure_alone(
    kernels: Sequence[CompiledKernel],
    run: KernelRun,
    threads: int,
    rounds: Rounds | None = None,
    workers: Workers | None = None,
) -> list[Outcome]:
    """Measure kernels that do the same, interleaved: round by round, each in turn.

    When the process dies or does not come to an end, each is tried beside the first alone, and the
    one at fault says so in `failed`.
    """
    workers = workers or measuring_processes()
    try:
        return _ask(workers, kernels, run, threads, rounds or Rounds())
    except WorkerCrash as crash:
        first, *others = kernels
        if not others:
            return [Outcome(failed=f"the process that ran it died: {crash}")]
        if len(others) == 1:
            (alone,) = measure_alone([first], run, threads, rounds, workers)
            return [alone, Outcome(failed=f"the process that ran it died: {crash}")]
    pairs = [measure_alone([first, other], run, threads, rounds, workers) for other in others]
    return [pairs[0][0], *(pair[1] for pair in pairs)]


@functools.cache
def measuring_processes() -> Workers:
    """Return the processes that run kernels for this one; they end with it."""
    workers = Workers("metadef.measure.kernel_process", LIMIT_SECONDS)
    atexit.register(workers.end)
    return workers


def _ask(
    workers: Workers,
    kernels: Sequence[CompiledKernel],
    run: KernelRun,
    threads: int,
    rounds: Rounds,
) -> list[Outcome]:
    objects = [kernel.to_bytes() for kernel in (meeting_point(), *kernels)]
    header = {
        "op": "measure",
        "sizes": [len(o) for o in objects],
        "reads": [_tensor(t) for t in run.reads],
        "writes": [_tensor(t) for t in run.writes],
        "symbols": dict(run.symbols),
        "copies": run.copies,
        "threads": threads,
        "rounds": vars(rounds),
    }
    answer = workers.ask(Message(header, b"".join(objects))).header
    if "error" in answer:
        return [Outcome(failed=answer["error"])] * len(kernels)
    return [Outcome(**found) for found in answer["outcomes"]]


def _tensor(tensor: Tensor) -> dict[str, Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"dims": [dim.value for dim in tensor.dims], "dtype": dtype}

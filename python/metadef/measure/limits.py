"""Measures what this machine reaches with a number of threads; the cache keeps it.

limits = device_limits(probe(), threads=2, cache=default_cache())
limits.bandwidth_of("memory", 2)
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from metadef.device.figures import Figure, Figures, from_data, to_data
from metadef.device.levels import MEMORY, capacities, level_names
from metadef.device.spec import DeviceSpec
from metadef.runtime.cache import Cache

from . import kernels
from .arithmetic import CHAIN, OPERAND, Arithmetic, arithmetic, clock
from .bench import Bench, Effort, Times
from .kernel_text import SINK, Kernel

#: called with what is measured next, and how much is done out of how much
Progress = Callable[[str, int, int], None]
Task = Callable[[Bench], Figure]

#: of the cache's entries; another way to measure is another number
_VERSION = 2
#: bytes that a run through memory goes over: some times the last cache, within these bounds
_LEAST_MEMORY, _MOST_MEMORY = 64 << 20, 512 << 20
_DTYPES = {
    "f32": torch.float32,
    "f64": torch.float64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "i8": torch.int8,
    "ui8": torch.uint8,
    "i32": torch.int32,
}
#: of what threads do together, which takes about a microsecond
_REPEATS = 500
#: elements between the two tensors of a copy
_SHIFT = 512


def device_limits(
    spec: DeviceSpec,
    threads: int,
    cache: Cache,
    *,
    again: bool = False,
    progress: Progress | None = None,
) -> Figures:
    """Return what this machine reaches with one and with `threads` threads, as `spec` describes it.

    What the cache has is not measured, unless `again`. A measurement takes some seconds.

    Raises:
        MetadefError: there is no back end for the device.
    """
    found: Figures | None = None
    for count in dict.fromkeys((1, threads)):
        key = _key(spec, count)
        kept = None if again else _kept(cache, key)
        if kept is None:
            kept = measure_limits(spec, count, progress=progress)
            cache.put(key, json.dumps(to_data(kept)).encode())
        found = kept if found is None else found.merged(kept)
    assert found is not None
    return found


def measure_limits(
    spec: DeviceSpec,
    threads: int,
    *,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Figures:
    """Measure this machine with `threads` threads: no cache is asked.

    Raises:
        MetadefError: there is no back end for the device.
    """
    bench = Bench(_kernels(spec), spec, effort)
    tasks = list(_tasks(spec, threads))
    found = []
    for done, (name, measure) in enumerate(tasks):
        if progress is not None:
            progress(name, done, len(tasks))
        found.append(measure(bench))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Figures(tuple(found), now)


def _kernels(spec: DeviceSpec) -> list[Kernel]:
    return [
        *(benchmark.kernel for benchmark in arithmetic(spec)),
        *(kernels.read(spec), kernels.copy(spec), kernels.copy(spec, streaming=True)),
        *(kernels.latency(), clock()),
        *(kernels.barrier(), kernels.fork_join(), kernels.timer()),
    ]


def _tasks(spec: DeviceSpec, threads: int) -> Iterator[tuple[str, Task]]:
    """Yield what to measure with `threads` threads: what it is called, and how."""
    if threads == 1:
        yield "clock", _clock
    for benchmark in arithmetic(spec):
        task = partial(_flops, benchmark=benchmark, threads=threads)
        yield f"flops {benchmark.of}", task
    for level in level_names(spec):
        patterns = ("read", "copy", "stream") if level == MEMORY else ("read", "copy")
        for pattern in patterns:
            task = partial(_bandwidth, spec=spec, pattern=pattern, level=level, threads=threads)
            yield f"{pattern} {level}", task
        if threads == 1:
            yield f"latency {level}", partial(_latency, spec=spec, level=level)
    if threads == 1:
        yield "timer", lambda bench: _figure(bench.times("timer", [], {}, 1), "timer_ns", "", 1)
    else:
        yield "barrier", partial(_barrier, threads=threads)
        yield "fork and join", partial(_fork_join, threads=threads)


def _flops(bench: Bench, benchmark: Arithmetic, threads: int) -> Figure:
    operands = [_operand(_DTYPES[element]) for element in benchmark.operands]
    sink = torch.zeros(SINK, dtype=_DTYPES[benchmark.result])
    times = bench.times(benchmark.kernel.name, [*operands, sink], {}, threads)
    return _rate(times, benchmark.operations * threads, "flops", benchmark.of, threads)


def _operand(dtype: torch.dtype) -> torch.Tensor:
    """Return numbers whose products stay finite, however often they are multiplied."""
    return torch.full((OPERAND,), 0.5 if dtype.is_floating_point else 1, dtype=dtype)


def _clock(bench: Bench) -> Figure:
    sink = torch.zeros(SINK, dtype=torch.int64)
    times = bench.times("clock", [torch.tensor([3, 5]), sink], {}, 1)
    return _rate(times, CHAIN, "clock_hz", "", 1)


def _bandwidth(bench: Bench, spec: DeviceSpec, pattern: str, level: str, threads: int) -> Figure:
    grain = kernels.grain(spec) * threads
    tensors = 1 if pattern == "read" else 2
    count = max(1, working_set(spec, level, threads) // (4 * tensors * grain)) * grain
    # One behind the other, but not so that the same bits of both addresses are equal.
    memory = torch.empty(tensors * (count + _SHIFT)).fill_(1.0)
    parts = [memory[i * (count + _SHIFT) :][:count] for i in range(tensors)]
    arguments = [*parts, torch.zeros(SINK)] if pattern == "read" else parts
    times = bench.times(pattern, arguments, {"S": count}, threads)
    return _rate(times, 4 * tensors * count, pattern, level, threads)


def _latency(bench: Bench, spec: DeviceSpec, level: str) -> Figure:
    """Go through the lines of the working set in random order, one index a line."""
    line = (spec.caches[0].line_bytes if spec.caches else 64) // 8
    lines = max(2, working_set(spec, level, 1) // (8 * line))
    order = torch.randperm(lines, generator=torch.Generator().manual_seed(0)) * line
    following = torch.zeros(lines * line, dtype=torch.int64)
    following[order] = order.roll(-1)
    sink = torch.zeros(SINK, dtype=torch.int64)
    times = bench.times("latency", [following, sink], {"S": lines * line}, 1)
    return _figure(times, "latency_ns", level, 1)


def _barrier(bench: Bench, threads: int) -> Figure:
    return _figure(bench.times("barrier", [], {}, threads, _REPEATS), "barrier_ns", "", threads)


def _fork_join(bench: Bench, threads: int) -> Figure:
    times = bench.times("fork_join", [], {"T": threads}, 1, _REPEATS)
    return _figure(times, "fork_join_ns", "", threads)


def working_set(spec: DeviceSpec, level: str, threads: int) -> int:
    """Return the bytes that `threads` threads go over to measure a level.

    The geometric mean of what the level and the one before it hold: too much for that, well within
    this. In memory, four times the last cache, within bounds.
    """
    sizes = capacities(spec, threads)
    names = list(sizes)
    at = names.index(level)
    nearer = sizes[names[at - 1]] if at else 0
    if level == MEMORY:
        wanted = min(max(4 * nearer, _LEAST_MEMORY), _MOST_MEMORY)
        return min(wanted, spec.memory_bytes // 8)
    return math.isqrt(nearer * sizes[level]) if at else sizes[level] // 2


def _rate(times: Times, amount: int, quantity: str, of: str, threads: int) -> Figure:
    """Return `amount` each repetition as an amount each second."""
    value = amount / times.best * 1e9
    return Figure(quantity, of, value, threads, times.spread, times.rounds)


def _figure(times: Times, quantity: str, of: str, threads: int) -> Figure:
    """Return the ns of a repetition."""
    return Figure(quantity, of, times.best, threads, times.spread, times.rounds)


def _key(spec: DeviceSpec, threads: int) -> str:
    text = f"limits {_VERSION} {threads} {spec.fingerprint()}"
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(cache: Cache, key: str) -> Figures | None:
    """Return the figures of an entry; one of another form counts as none."""
    entry = cache.get(key)
    if entry is None:
        return None
    try:
        return from_data(json.loads(entry))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None

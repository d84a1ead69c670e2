"""Measures what this machine reaches with a number of threads; the cache keeps it.

limits = device_limits(probe(), threads=2, cache=default_cache())
limits.bandwidth("memory", 2)
"""

from __future__ import annotations

import datetime
import hashlib
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from metadef.device.levels import MEMORY, capacities, level_names
from metadef.device.limits import Limits, Measurement, fingerprint, from_json, to_json
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import DeviceError
from metadef.runtime.cache import Cache

from . import kernels
from .bench import Bench, Effort, Times

#: called with what is measured next, and how much is done out of how much
Progress = Callable[[str, int, int], None]
Task = Callable[[Bench], Measurement]

_ELEMENTS = ("f32", "f64")

#: of the cache's entries; another way to measure is another number
_VERSION = 1
#: bytes that a run through memory goes over: some times the last cache, within these bounds
_LEAST_MEMORY, _MOST_MEMORY = 64 << 20, 512 << 20
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
) -> Limits:
    """Return what this machine reaches with one and with `threads` threads, as `spec` describes it.

    What the cache has is not measured, unless `again`. A measurement takes some seconds.

    Raises:
        MetadefError: there is no back end for the device.
    """
    found: Limits | None = None
    for count in dict.fromkeys((1, threads)):
        key = _key(spec, count)
        kept = None if again else _kept(cache, key)
        if kept is None:
            kept = measure_limits(spec, count, progress=progress)
            cache.put(key, to_json(kept).encode())
        found = kept if found is None else found.merged(kept)
    assert found is not None
    return found


def measure_limits(
    spec: DeviceSpec,
    threads: int,
    *,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> Limits:
    """Measure this machine with `threads` threads: no cache is asked.

    Raises:
        MetadefError: there is no back end for the device.
    """
    bench = Bench(_kernels(spec), spec, effort)
    tasks = list(_tasks(spec, threads))
    measurements = []
    for done, (name, measure) in enumerate(tasks):
        if progress is not None:
            progress(name, done, len(tasks))
        measurements.append(measure(bench))
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return Limits(spec.name, fingerprint(spec), now, tuple(measurements))


def _kernels(spec: DeviceSpec) -> list[kernels.Kernel]:
    return [
        *(kernels.fma(spec, element) for element in _ELEMENTS),
        *(kernels.read(spec), kernels.copy(spec), kernels.copy(spec, streaming=True)),
        *(kernels.latency(), kernels.barrier(), kernels.fork_join(), kernels.timer()),
    ]


def _tasks(spec: DeviceSpec, threads: int) -> Iterator[tuple[str, Task]]:
    """Yield what to measure with `threads` threads: what it is called, and how."""
    for element in _ELEMENTS:
        yield f"fma {element}", partial(_fma, spec=spec, element=element, threads=threads)
    for level in level_names(spec):
        patterns = ("read", "copy", "stream") if level == MEMORY else ("read", "copy")
        for pattern in patterns:
            task = partial(_bandwidth, spec=spec, pattern=pattern, level=level, threads=threads)
            yield f"{pattern} {level}", task
        if threads == 1:
            yield f"latency {level}", partial(_latency, spec=spec, level=level)
    if threads == 1:
        yield "timer", lambda bench: _figure(bench.times("timer", [], {}, 1), "timer", "", 1)
    else:
        yield "barrier", partial(_barrier, threads=threads)
        yield "fork and join", partial(_fork_join, threads=threads)


def _fma(bench: Bench, spec: DeviceSpec, element: str, threads: int) -> Measurement:
    dtype = {"f32": torch.float32, "f64": torch.float64}[element]
    x = torch.full((16,), 0.5, dtype=dtype)
    sink = torch.zeros(kernels.SINK, dtype=dtype)
    times = bench.times(f"fma_{element}", [x, sink], {}, threads)
    flops = 2 * kernels.fma_chains(spec) * kernels.lanes(spec, element) * threads
    return _rate(times, flops, "fma", element, threads)


def _bandwidth(
    bench: Bench, spec: DeviceSpec, pattern: str, level: str, threads: int
) -> Measurement:
    grain = kernels.grain(spec) * threads
    tensors = 1 if pattern == "read" else 2
    count = max(1, working_set(spec, level, threads) // (4 * tensors * grain)) * grain
    # One behind the other, but not so that the same bits of both addresses are equal.
    memory = torch.empty(tensors * (count + _SHIFT)).fill_(1.0)
    parts = [memory[i * (count + _SHIFT) :][:count] for i in range(tensors)]
    arguments = [*parts, torch.zeros(kernels.SINK)] if pattern == "read" else parts
    times = bench.times(pattern, arguments, {"S": count}, threads)
    return _rate(times, 4 * tensors * count, pattern, level, threads)


def _latency(bench: Bench, spec: DeviceSpec, level: str) -> Measurement:
    """Go through the lines of the working set in random order, one index a line."""
    line = (spec.caches[0].line_bytes if spec.caches else 64) // 8
    lines = max(2, working_set(spec, level, 1) // (8 * line))
    order = torch.randperm(lines, generator=torch.Generator().manual_seed(0)) * line
    following = torch.zeros(lines * line, dtype=torch.int64)
    following[order] = order.roll(-1)
    sink = torch.zeros(kernels.SINK, dtype=torch.int64)
    times = bench.times("latency", [following, sink], {"S": lines * line}, 1)
    return _figure(times, "latency", level, 1)


def _barrier(bench: Bench, threads: int) -> Measurement:
    return _figure(bench.times("barrier", [], {}, threads, _REPEATS), "barrier", "", threads)


def _fork_join(bench: Bench, threads: int) -> Measurement:
    times = bench.times("fork_join", [], {"T": threads}, 1, _REPEATS)
    return _figure(times, "fork_join", "", threads)


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


def _rate(times: Times, amount: int, quantity: str, of: str, threads: int) -> Measurement:
    """Return `amount` each repetition as an amount each second."""
    return Measurement(quantity, of, threads, amount / times.best * 1e9, times.spread, times.rounds)


def _figure(times: Times, quantity: str, of: str, threads: int) -> Measurement:
    """Return the ns of a repetition."""
    return Measurement(quantity, of, threads, times.best, times.spread, times.rounds)


def _key(spec: DeviceSpec, threads: int) -> str:
    text = f"limits {_VERSION} {threads} {fingerprint(spec)}"
    return hashlib.sha256(text.encode()).hexdigest()


def _kept(cache: Cache, key: str) -> Limits | None:
    """Return the limits of an entry; one of another form counts as none."""
    entry = cache.get(key)
    if entry is None:
        return None
    try:
        return from_json(entry.decode())
    except (DeviceError, UnicodeDecodeError):
        return None

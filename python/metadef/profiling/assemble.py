"""From what the clock said in each round, and what the kernels have to do, to a profile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metadef.cost.reuse import Access, levels_of
from metadef.cost.roofline import Bound, bound
from metadef.cost.work import Amounts
from metadef.device.figures import Figures
from metadef.device.levels import capacities
from metadef.device.spec import DeviceSpec
from metadef.frontend.kernels import KernelSummary, lines_of
from metadef.frontend.part import Part
from metadef.runtime.back_graph import Arena, Buffer, Input, Output, Step

from .profile import Dispatch, KernelProfile, Profile
from .spans import Round, Span

#: what a kernel is run by
NATIVE, TORCH = "native", "torch"


@dataclass(frozen=True)
class _Place:
    """A step of a native part, or an op of torch: in which span of a round, and where there."""

    span: int
    step: int
    name: str
    kind: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    amounts: Amounts
    accesses: tuple[Access, ...] = ()
    uncounted: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Times:
    """The ns of a place in each round: [rounds, threads] running, and waiting for the others."""

    running: np.ndarray
    waiting: np.ndarray

    @property
    def passing(self) -> np.ndarray:
        """[rounds]: the mean over the threads that took part."""
        return np.nanmean(self.running + self.waiting, axis=1)


def make_profile(
    rounds: Sequence[Round],
    untimed_ns: Sequence[int],
    parts: Sequence[Part],
    symbols: Mapping[str, int],
    threads: int,
    device: DeviceSpec,
    limits: Figures | None,
) -> Profile:
    """Return the profile of calls that all took the same way."""
    places = list(_places(rounds[0].spans, {part.name: part for part in parts}))
    traffic = levels_of([p.accesses for p in places], capacities(device, threads))
    times = [_times(rounds, place) for place in places]
    order = np.argsort([r.ns for r in rounds], kind="stable")
    middle = order[len(order) // 4 : len(order) - len(order) // 4]
    grouped: dict[str, list[int]] = {}
    for i, place in enumerate(places):
        grouped.setdefault(place.name, []).append(i)
    kernels = [
        _kernel(
            [places[i] for i in group],
            [times[i] for i in group],
            [traffic[i] for i in group],
            middle,
            limits,
            threads,
        )
        for group in grouped.values()
    ]
    return Profile(
        threads=threads,
        rounds=len(rounds),
        symbols=dict(symbols),
        total_ns=float(np.mean([rounds[i].ns for i in middle])),
        untimed_ns=float(np.mean(_middle_half(untimed_ns))),
        kernels=tuple(sorted(kernels, key=lambda kernel: -kernel.ns)),
        dispatches=tuple(
            Dispatch(place.name, float(t.passing[middle].mean()), place.lines)
            for place, t in zip(places, times, strict=True)
        ),
        device=device.name,
        limits=limits,
        round=rounds[order[len(order) // 2]],
        steps=tuple(
            tuple((p.name, ", ".join(p.lines)) for p in places if p.span == number)
            for number in range(len(rounds[0].spans))
        ),
    )


def _places(spans: Sequence[Span], parts: Mapping[str, Part]) -> Iterator[_Place]:
    for number, span in enumerate(spans):
        if not span.part:
            lines = (span.line,) if span.line else ()
            nothing = Amounts({}, (), ())
            yield _Place(number, 0, span.op, TORCH, (span.op,), lines, nothing)
            continue
        part = parts[span.part]
        summaries = {summary.name: summary for summary in part.summaries}
        amounts = {
            name: summaries[name].work.evaluate(span.symbols)
            for name in {step.kernel for step in part.program.graph.steps}
        }
        prefix = "" if span.part == "main" else f"{span.part}."
        for i, step in enumerate(part.program.graph.steps):
            yield _native_place(
                number, i, prefix, step, summaries[step.kernel], amounts[step.kernel], span
            )


def _native_place(
    number: int,
    at: int,
    prefix: str,
    step: Step,
    summary: KernelSummary,
    amounts: Amounts,
    span: Span,
) -> _Place:
    moved = zip((*step.reads, *step.writes), (*amounts.reads, *amounts.writes), strict=True)
    return _Place(
        span=number,
        step=at,
        name=prefix + summary.name,
        kind=NATIVE,
        ops=summary.ops,
        lines=tuple(dict.fromkeys(lines_of(step.location))) or summary.lines,
        amounts=amounts,
        accesses=tuple(_access(prefix, buffer, size, span.symbols) for buffer, size in moved),
        uncounted=summary.work.uncounted,
    )


def _access(prefix: str, buffer: Buffer, size: int, symbols: Mapping[str, int]) -> Access:
    if isinstance(buffer, Arena):
        start = buffer.offset.evaluate(symbols)
        return Access(f"{prefix}arena", start, start + buffer.size.evaluate(symbols), size)
    if isinstance(buffer, Input | Output):
        return Access(f"{prefix}{type(buffer).__name__} {buffer.number}", 0, 1, size)
    return Access(f"weight {buffer.name}", 0, 1, size)


def _times(rounds: Sequence[Round], place: _Place) -> _Times:
    stamps = np.stack([r.spans[place.span].stamps for r in rounds])
    before, after, left = (stamps[:, :, 2 * place.step + i] for i in range(3))
    there = stamps[:, :, 0] > 0
    running = np.where(there, after - before, np.nan)
    return _Times(running, np.where(there, left - after, np.nan))


def _kernel(
    places: Sequence[_Place],
    times: Sequence[_Times],
    traffic: Sequence[Mapping[str, int]],
    middle: np.ndarray,
    limits: Figures | None,
    threads: int,
) -> KernelProfile:
    """Return a kernel's profile from all its runs in a call."""
    first = places[0]
    passing = np.sum([t.passing for t in times], axis=0)
    operations: dict[str, int] = {}
    for place in places:
        for element, count in place.amounts.operations.items():
            operations[element] = operations.get(element, 0) + count
    found = {level: sum(t[level] for t in traffic) for level in traffic[0]}
    bounds = [Bound(0.0, "")]
    if limits is not None:
        bounds = [
            bound(place.amounts.operations, moved, limits, threads)
            for place, moved in zip(places, traffic, strict=True)
        ]
    return KernelProfile(
        name=first.name,
        kind=first.kind,
        runs=len(places),
        ns=float(passing[middle].mean()),
        p90_ns=float(np.percentile(passing, 90)),
        thread_ns=_by_thread([t.running for t in times], middle),
        wait_ns=_by_thread([t.waiting for t in times], middle),
        operations=operations,
        flops=sum(place.amounts.flops for place in places),
        bytes=sum(place.amounts.bytes for place in places),
        traffic=found,
        limit_ns=sum(b.ns for b in bounds),
        bound=max(bounds, key=lambda b: b.ns).by,
        ops=first.ops,
        lines=tuple(dict.fromkeys(line for place in places for line in place.lines)),
        uncounted=first.uncounted,
    )


def _by_thread(times: Sequence[np.ndarray], middle: np.ndarray) -> tuple[float, ...]:
    """Return for each thread that took part the sum over runs of its mean time."""
    totals = np.sum(times, axis=0)[middle].mean(axis=0)
    return tuple(float(ns) for ns in totals if not np.isnan(ns))


def _middle_half(values: Sequence[int]) -> list[int]:
    ordered = sorted(values)
    return ordered[len(ordered) // 4 : len(ordered) - len(ordered) // 4]

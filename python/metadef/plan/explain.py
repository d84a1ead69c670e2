"""A plan in words: what was chosen, what lost, by how much, by whom, on what evidence."""

from __future__ import annotations

from collections.abc import Iterator

from metadef.plan.decision import choice_text
from metadef.plan.plan import Entry, Evidence, ExecutionPlan

_WHOSE = {"person": "a person's own", "search": "by search", "default": "the compiler's own"}


def explain(plan: ExecutionPlan) -> Iterator[str]:
    """Yield the lines of a plan in words."""
    yield f"for model {plan.model or '?'} on {plan.device.name}, {len(plan.entries)} decision(s)"
    if plan.objective:
        yield f"objective: {plan.objective}"
    for entry in plan.entries:
        yield ""
        yield f"{entry.kind} of {entry.what} [{entry.key[:12]}]"
        if entry.what.ops:
            yield f"  ops: {' '.join(entry.what.ops)}"
        if entry.what.lines:
            yield f"  from: {', '.join(entry.what.lines)}"
        yield from _choices(entry)


def _choices(entry: Entry) -> Iterator[str]:
    found = entry.evidence or Evidence()
    yield f"  chosen, {_WHOSE[entry.by]}: {choice_text(entry.choice)}{_time(found.measured_ns)}"
    if found.measured_ns and found.baseline_ns:
        ratio = found.baseline_ns / found.measured_ns
        yield f"  lost: the default{_time(found.baseline_ns)}, {_apart(ratio)}"
    elif entry.by != "default":
        yield "  lost: the default, not measured"
    if entry.second is not None:
        ratio = found.second_ns / found.measured_ns if found.second_ns and found.measured_ns else 0
        slower = f", {_apart(ratio)}" if ratio else ""
        yield f"  lost, second best: {choice_text(entry.second)}{_time(found.second_ns)}{slower}"
    evidence = list(_evidence(found))
    yield f"  evidence: {', '.join(evidence) if evidence else 'none'}"


def _evidence(found: Evidence) -> Iterator[str]:
    if found.predicted_ns is not None:
        off = ""
        if found.measured_ns:
            off = f" ({abs(found.predicted_ns / found.measured_ns - 1):.0%} off)"
        yield f"predicted{_time(found.predicted_ns)}{off}"
    if found.spread is not None:
        yield f"spread {found.spread:.0%}"
    if found.date:
        yield found.date
    if found.device:
        yield f"on device {found.device[:12]}"


def _time(ns: float | None) -> str:
    if ns is None:
        return ""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size:
            return f" {ns / size:.3g} {unit}"
    return f" {ns:.3g} ns"


def _apart(ratio: float) -> str:
    """Say how a time compares with that of what was chosen."""
    return f"{ratio:.2f} times as long"

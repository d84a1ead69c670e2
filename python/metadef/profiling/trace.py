"""A profile's median call as a trace for Perfetto (ui.perfetto.dev) and Chrome (about:tracing).

The format is Chrome's Trace Event Format: complete events ("X") in microseconds, one track a
thread; a kernel's event ends where the thread goes to wait for the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .profile import Profile

_PYTHON = "Python"


def trace(profiles: Sequence[Profile], model: str) -> dict[str, Any]:
    """Return the trace of the profiles' median calls, a process each."""
    events: list[dict[str, Any]] = []
    for process, profile in enumerate(profiles, 1):
        title = f"{model}, {profile.threads} thread(s)"
        events.append(_named("process_name", process, 0, title))
        for thread in range(profile.threads):
            events.append(_named("thread_name", process, thread, f"thread {thread}"))
        events += _events(profile, process)
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _events(profile: Profile, process: int) -> Iterator[dict[str, Any]]:
    round_, kernels = profile.round, {kernel.name: kernel for kernel in profile.kernels}

    def event(
        name: str, category: str, thread: int, start: int, end: int, args: dict[str, Any]
    ) -> dict[str, Any]:
        at, length = (start - round_.start) / 1e3, (end - start) / 1e3
        return {
            "name": name,
            "cat": category,
            "ph": "X",
            "pid": process,
            "tid": thread,
            "ts": at,
            "dur": length,
            "args": args,
        }

    yield event("call", _PYTHON, 0, round_.start, round_.end, {"symbols": dict(profile.symbols)})
    for span, steps in zip(round_.spans, profile.steps, strict=True):
        for thread, row in enumerate(span.stamps.tolist()):
            if not row[0]:
                continue  # the team was smaller than was asked for
            for i, (name, lines) in enumerate(steps):
                before, after, left = row[2 * i : 2 * i + 3]
                kernel = kernels[name]
                args = {
                    "from": lines,
                    "ops": " ".join(kernel.ops),
                    "flops": kernel.flops // kernel.runs,
                    "bytes": kernel.bytes // kernel.runs,
                    "bound": kernel.bound,
                }
                yield event(name, kernel.kind, thread, before, after, args)
                if left > after and len(span.stamps) > 1:
                    yield event("wait", "barrier", thread, after, left, {"after": name})


def _named(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}

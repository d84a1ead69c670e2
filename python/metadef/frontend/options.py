"""How to compile: the device, threads, the cache, and what to show meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import torch

from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.instrumentation import ALL, Printing
from metadef.plan.files import load
from metadef.plan.plan import ExecutionPlan
from metadef.runtime.cache import Cache, default_cache
from metadef.runtime.host import device_named

#: OpenMP ends the process when it cannot start a thread
_MOST_THREADS = 256


@dataclass(frozen=True)
class Options:
    """How to compile: for which device, with how many threads, and what to show meanwhile."""

    device: DeviceSpec
    threads: int
    cache: Cache
    fallback: str = "eager"
    printing: Printing = field(default_factory=Printing)
    jobs: int = 2
    plan: ExecutionPlan | None = None


def default_options(
    *,
    device: DeviceSpec | str | Path | None = None,
    threads: int | None = None,
    fallback: str = "eager",
    print_ir_after_all: bool = False,
    ir_dir: Path | None = None,
    plan: ExecutionPlan | str | Path | None = None,
) -> Options:
    """Return options with this machine's device, torch's number of threads, and the cache on disk.

    Raises:
        MetadefError: an option has no such value, or the device's or plan's file cannot be read.
    """
    if fallback not in ("eager", "error"):
        raise MetadefError(f"fallback: expected 'eager' or 'error', got {fallback!r}")
    if threads is not None:
        _check_threads(threads)
    after = ALL if print_ir_after_all else frozenset[str]()
    return Options(
        device=device_named(device),
        threads=threads or max(1, torch.get_num_threads()),
        cache=default_cache(),
        fallback=fallback,
        printing=Printing(after=after, ir_dir=ir_dir),
        jobs=max(1, min(8, os.cpu_count() or 1)),
        plan=_plan(plan),
    )


def _plan(plan: ExecutionPlan | str | Path | None) -> ExecutionPlan | None:
    if plan is None or isinstance(plan, ExecutionPlan):
        return plan
    if not isinstance(plan, str | Path):
        raise MetadefError(
            f"plan: expected an ExecutionPlan or the path of one, got {type(plan).__name__}"
        )
    return load(Path(plan))


def _check_threads(threads: int) -> None:
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise MetadefError(f"threads: expected an int, got {type(threads).__name__}")
    most = max(_MOST_THREADS, os.cpu_count() or 1)
    if not 1 <= threads <= most:
        wanted = "at least 1" if threads < 1 else f"at most {most}"
        raise MetadefError(f"threads: expected {wanted}, got {threads}")

"""How to compile: the device, threads, the cache, and what to show meanwhile."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import torch

from metadef.codegen.version import compiler_version
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.instrumentation import ALL, Printing
from metadef.plan.files import load
from metadef.plan.plan import ExecutionPlan, PlannedDevice
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
    error_limit: float | None = None


def default_options(
    *,
    device: DeviceSpec | str | Path | None = None,
    threads: int | None = None,
    fallback: str = "eager",
    print_ir_after_all: bool = False,
    ir_dir: Path | None = None,
    plan: ExecutionPlan | str | Path | None = None,
    error_limit: float | None = None,
) -> Options:
    """Return options with this machine's device, torch's number of threads, and the cache on disk.

    Raises:
        MetadefError: an option has no such value, or the device's or plan's file cannot be read.
    """
    if fallback not in ("eager", "error"):
        raise MetadefError(f"fallback: expected 'eager' or 'error', got {fallback!r}")
    if threads is not None:
        _check_threads(threads)
    if error_limit is not None:
        check_error_limit(error_limit)
    after = ALL if print_ir_after_all else frozenset[str]()
    spec = device_named(device)
    followed = _plan(plan)
    if followed is None and error_limit is not None:
        followed = empty_plan(spec)  # it notes what comes of the limit
    return Options(
        device=spec,
        threads=threads or max(1, torch.get_num_threads()),
        cache=default_cache(),
        fallback=fallback,
        printing=Printing(after=after, ir_dir=ir_dir),
        jobs=max(1, min(8, os.cpu_count() or 1)),
        plan=followed,
        error_limit=error_limit,
    )


def _plan(plan: ExecutionPlan | str | Path | None) -> ExecutionPlan | None:
    if plan is None or isinstance(plan, ExecutionPlan):
        return plan
    if not isinstance(plan, str | Path):
        raise MetadefError(
            f"plan: expected an ExecutionPlan or the path of one, got {type(plan).__name__}"
        )
    return load(Path(plan))


def empty_plan(device: DeviceSpec, model: str = "") -> ExecutionPlan:
    """Return a plan that wants nothing: a model compiled with it notes its decisions."""
    return ExecutionPlan(
        model, PlannedDevice(device.name, device.fingerprint()), compiler_version()
    )


def check_error_limit(limit: float) -> None:
    """Check the largest relative error of outputs that a user allows.

    Raises:
        MetadefError: it is no number over 0 and under 1.
    """
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        raise MetadefError(f"error_limit: expected a number, got {type(limit).__name__}")
    if not 0 < limit < 1:
        raise MetadefError(f"error_limit: expected over 0 and under 1, got {limit}")


def _check_threads(threads: int) -> None:
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise MetadefError(f"threads: expected an int, got {type(threads).__name__}")
    most = max(_MOST_THREADS, os.cpu_count() or 1)
    if not 1 <= threads <= most:
        wanted = "at least 1" if threads < 1 else f"at most {most}"
        raise MetadefError(f"threads: expected {wanted}, got {threads}")

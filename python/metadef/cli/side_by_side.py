"""Measures programs of one model side by side: a process each, slices of time in turn.

Each process builds its program alone, with cold caches, and checks every tensor against eager's
before anything is timed. Then the processes take turns, so that all meet the same noise, and a
ratio of two programs is the median over the rounds of the ratio of their slices.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from metadef.cli.bench_process import LIMITS, OURS
from metadef.cli.usage import UsageError
from metadef.diagnostics import MetadefError

#: a slice has at least so many passes
_LEAST_PASSES = 3
#: a program whose slice takes longer than this, in seconds, has had enough after so many rounds
_SLOW, _ROUNDS_OF_SLOW = 3.0, 3

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Job:
    """A program, `metadef` or a peer, with so many threads."""

    program: str
    threads: int


@dataclass
class Measured:
    """What a job gave: ms of each pass by round, what building took; or why it failed.

    The job `limits` gives, by round, what the machine reached: `fma` in flop/s, `copy` in bytes/s.
    """

    job: Job
    built: dict[str, Any] = field(default_factory=dict)
    slices: dict[int, list[float]] = field(default_factory=dict)
    limits: dict[int, dict[str, float]] = field(default_factory=dict)
    cores: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    run_peak_mib: float = 0.0
    warm_compile_seconds: float | None = None
    failed: str | None = None

    def percentile(self, percent: float) -> float:
        """Return the least ms that `percent` of the passes do not exceed."""
        ordered = sorted(ms for passes in self.slices.values() for ms in passes)
        return ordered[max(0, -int(-len(ordered) * percent // 100) - 1)]

    @property
    def calls_per_second(self) -> float:
        """Calls over the time that they took together."""
        calls = [ms for passes in self.slices.values() for ms in passes]
        return 1e3 * len(calls) / sum(calls)

    @property
    def medians(self) -> dict[int, float]:
        """The median of each slice, by round."""
        return {number: median(passes) for number, passes in self.slices.items()}

    @property
    def ms(self) -> float:
        """The median over the rounds."""
        return median(self.medians.values())


def ratio(baseline: Measured, other: Measured) -> float:
    """Return how many times faster `other` is, over the rounds that both were in."""
    before, after = baseline.medians, other.medians
    return median(before[number] / after[number] for number in before.keys() & after.keys())


def measure(
    model: str,
    jobs: Sequence[Job],
    *,
    rounds: int,
    slice_seconds: float = 0.2,
    device: str | None = None,
    fallback: str = "eager",
    plan: str | None = None,
    error_limit: float | None = None,
    build_timeout: float = 600,
    warm: bool = False,
    traffic: int = 0,
    tell: Tell = lambda stage, done, total: None,
) -> list[Measured]:
    """Build each job of the model that `load_model` knows by name, then measure all in turn.

    Results are compared with those of the first job of eager, where it is there. `device`,
    `fallback`, `plan` and `error_limit` are for Metadef; with `warm` it is compiled once more, from
    the cache that it left. A job `limits` measures the machine, and copies that move `traffic`
    bytes.

    Raises:
        UsageError, MetadefError: the model cannot be loaded.
    """
    steps = len(jobs) + rounds
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        request = {
            "model": model,
            "reference": str(folder / "reference.pt"),
            "device": device,
            "fallback": fallback,
            "plan": plan,
            "error_limit": error_limit,
            "traffic": traffic,
        }
        processes = []
        measured = []
        for done, job in enumerate(jobs):
            tell(f"building {job.program}, {job.threads} thread(s)", done, steps)
            caches = folder / f"{job.program}-{job.threads}"
            process = stack.enter_context(_process(request, job, caches))
            result = Measured(job, process.answer(build_timeout))
            _take_failure(result)
            if warm and job.program == OURS and result.failed is None:
                with _process(request, job, caches) as again:
                    result.warm_compile_seconds = again.answer(build_timeout).get("compile_seconds")
            processes.append(process)
            measured.append(result)
        for number in range(rounds):
            tell("in turn", len(jobs) + number, steps)
            first = number % len(jobs)  # nobody always follows the same one
            order = [*range(first, len(jobs)), *range(first)]
            for i in order:
                _run_slice(processes[i], measured[i], number, slice_seconds, build_timeout)
    return measured


def _take_failure(result: Measured) -> None:
    """Note a failure to build; raise where it is the model's own."""
    failed, at = result.built.pop("failed", None), result.built.pop("at", None)
    if at == "usage":
        raise UsageError(failed)
    if at == "model":
        raise MetadefError(failed)
    result.failed = failed


def _run_slice(
    process: _Process, result: Measured, number: int, seconds: float, timeout: float
) -> None:
    if result.failed is not None:
        return
    slow = any(sum(passes) > _SLOW * 1e3 for passes in result.slices.values())
    if slow and len(result.slices) >= _ROUNDS_OF_SLOW:
        return
    answer = process.ask({"seconds": seconds, "least": _LEAST_PASSES}, timeout)
    if "failed" in answer:
        result.failed = answer["failed"]
        return
    if result.job.program == LIMITS:
        result.limits[number] = answer["limits"]
        return
    result.slices[number] = answer["ms"]
    result.cores.append(answer["cores"])
    result.others.append(answer["others"])
    result.run_peak_mib = max(result.run_peak_mib, answer["peak_mib"])


class _Process:
    """A bench process and its pipes."""

    def __init__(self, process: subprocess.Popen[bytes], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._read = b""

    def ask(self, command: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Send a command and return the answer; one with `failed` when there is none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"failed": self._end()}
        return self.answer(timeout)

    def answer(self, timeout: float) -> dict[str, Any]:
        """Return the next answer; one with `failed` when it does not come within the seconds."""
        assert self._process.stdout is not None
        end = time.monotonic() + timeout
        while b"\n" not in self._read:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0, end - time.monotonic())
            )
            if not ready:
                self._process.kill()
                return {"failed": f"no answer within {timeout:.0f} s"}
            chunk = os.read(self._process.stdout.fileno(), 1 << 16)
            if not chunk:
                return {"failed": self._end()}
            self._read += chunk
        line, _, self._read = self._read.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> str:
        code = self._process.wait()
        said = self._errors.read_text(errors="replace").strip().splitlines()
        return f"the process ended with code {code}: {said[-1] if said else 'no message'}"


@cache
def _headers_of_inductor() -> Path:
    """Return a folder for headers that it compiles once for all models, kept for this process."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    return Path(folder.name)


@contextmanager
def _process(request: dict[str, Any], job: Job, caches: Path) -> Iterator[_Process]:
    """Start a process for the job, with its caches in a folder of its own; end it at the exit."""
    if not caches.is_dir():
        caches.mkdir()
        (caches / "precompiled_headers").symlink_to(_headers_of_inductor())
    request = request | {"program": job.program, "threads": job.threads}
    command = [sys.executable, "-m", "metadef.cli.bench_process", json.dumps(request)]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path),
        "OMP_NUM_THREADS": str(job.threads),
        "METADEF_CACHE_DIR": str(caches),
        "TORCHINDUCTOR_CACHE_DIR": str(caches),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "HF_HUB_OFFLINE": "1",
    }
    errors = caches.with_suffix(".txt")
    with (
        errors.open("wb") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment,
        ) as process,
    ):
        try:
            yield _Process(process, errors)
        finally:
            if process.stdin is not None:
                process.stdin.close()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()

"""A profile as data: each kernel's time, work, and share of what the device can do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metadef.device.figures import Figures, to_data

from .spans import Round


@dataclass(frozen=True)
class KernelProfile:
    """A kernel, or an op that torch runs, with all its runs in one call; times in ns.

    `ns` is time that passes; with several threads, the mean over them of running the kernel and of
    then waiting for the others, so that all kernels add up to the call. `thread_ns` and `wait_ns`
    are the two for each thread. `operations` are by element type, `traffic` are bytes by the
    nearest memory level that can hold the data between its uses. `limit_ns` is the least time that
    the device's limits allow, and `bound` what sets it: an element type or a memory level.
    """

    name: str
    kind: str
    runs: int
    ns: float
    p90_ns: float
    thread_ns: tuple[float, ...]
    wait_ns: tuple[float, ...]
    operations: Mapping[str, int]
    flops: int
    bytes: int
    traffic: Mapping[str, int]
    limit_ns: float
    bound: str
    ops: tuple[str, ...]
    lines: tuple[str, ...]
    #: ops whose arithmetic is not in `operations`
    uncounted: tuple[str, ...] = ()

    @property
    def flops_per_second(self) -> float:
        return self.flops / self.ns * 1e9 if self.ns else 0.0

    @property
    def bytes_per_second(self) -> float:
        return self.bytes / self.ns * 1e9 if self.ns else 0.0

    @property
    def of_limit(self) -> float:
        """The part of the device's limit that is reached: 1 is all."""
        return self.limit_ns / self.ns if self.ns else 0.0

    @property
    def places(self) -> list[str]:
        """Its source lines without their folders, one text a file: `model.py:41,43`."""
        by_file: dict[str, list[str]] = {}
        for line in self.lines:
            file, _, number = line.rpartition("/")[2].rpartition(":")
            by_file.setdefault(file, []).append(number)
        return [f"{file}:{','.join(numbers)}" for file, numbers in by_file.items()]

    @property
    def balance(self) -> float:
        """The mean over the busiest of the threads' times: 1 when all work equally long."""
        most = max(self.thread_ns, default=0.0)
        return sum(self.thread_ns) / len(self.thread_ns) / most if most else 1.0


@dataclass(frozen=True)
class Dispatch:
    """One run of a kernel in a call, in program order."""

    name: str
    ns: float
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """Where the time of a call goes; times in ns.

    `total_ns` is the call as profiled, from Python to Python, `untimed_ns` without the clock; the
    difference of `total_ns` and all kernels is spent in Python and in starting threads. Times are
    means over the middle half of the rounds, ordered by their total. `round` is the median one,
    and `steps` has name and source lines of each step of its spans.
    """

    threads: int
    rounds: int
    symbols: Mapping[str, int]
    total_ns: float
    untimed_ns: float
    kernels: tuple[KernelProfile, ...]
    dispatches: tuple[Dispatch, ...]
    device: str
    limits: Figures | None
    round: Round = dataclasses.field(repr=False)
    steps: tuple[tuple[tuple[str, str], ...], ...] = dataclasses.field(repr=False)

    @property
    def kernel_ns(self) -> float:
        """The time in kernels and torch's ops, and waiting at barriers."""
        return sum(kernel.ns for kernel in self.kernels)

    def kernel(self, name: str) -> KernelProfile:
        """Return the profile of the kernel called `name`."""
        return next(kernel for kernel in self.kernels if kernel.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Return the profile as plain data, for JSON."""
        data = dataclasses.asdict(dataclasses.replace(self, round=Round(0, 0, ()), steps=()))
        del data["round"], data["steps"]
        for entry, kernel in zip(data["kernels"], self.kernels, strict=True):
            entry["share"] = kernel.ns / self.total_ns
            entry["flops_per_second"] = kernel.flops_per_second
            entry["bytes_per_second"] = kernel.bytes_per_second
            entry["of_limit"] = kernel.of_limit
            entry["balance"] = kernel.balance
        data["limits"] = None if self.limits is None else to_data(self.limits)
        data["kernel_ns"] = self.kernel_ns
        return data

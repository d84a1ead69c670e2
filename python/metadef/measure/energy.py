"""Energy counters: which of them this machine lets us read, and the joules between two readings.

Processors of Intel and AMD count what they use (RAPL), which Linux shows in /sys/class/powercap;
GPUs of NVIDIA say it through NVML. Where neither can be read there is a reason, and no figure.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from metadef.device.spec import Energy

_POWERCAP = Path("/sys/class/powercap")
_NVML = "libnvidia-ml.so.1"


class Counter(Protocol):
    """Something that counts energy from some time on."""

    @property
    def name(self) -> str:
        """What is counted, as `package-0`."""

    def joules(self, since: float = 0.0) -> float:
        """Return the reading, unwrapped where it has wrapped once after the reading `since`."""


@dataclass(frozen=True)
class RaplZone:
    """A zone of powercap; its counter starts again from 0 after `range_uj`."""

    name: str
    file: Path
    range_uj: int

    def joules(self, since: float = 0.0) -> float:
        now = int(self.file.read_text()) / 1e6
        return now if now >= since else now + self.range_uj / 1e6


@dataclass(frozen=True)
class NvmlGpu:
    """A GPU of NVIDIA, which counts millijoules since its driver was loaded."""

    name: str
    library: Any = field(repr=False)
    handle: Any = field(repr=False)

    def joules(self, since: float = 0.0) -> float:
        millijoules = ctypes.c_ulonglong()
        status = self.library.nvmlDeviceGetTotalEnergyConsumption(
            self.handle, ctypes.byref(millijoules)
        )
        if status:
            raise OSError(f"NVML: no energy of {self.name}, error {status}")
        return millijoules.value / 1e3


@dataclass
class Used:
    """What a measured block has used, in all domains together; known when the block has ended."""

    joules: float = 0.0


def energy_of(
    kind: str, powercap: Path = _POWERCAP, load: Callable[[str], Any] = ctypes.CDLL
) -> Energy:
    """Say which counters tell the energy of this machine's `cpu` or `gpu`, or why none does."""
    found, reason = counters(kind, powercap, load)
    if not found:
        return Energy("none", reason=reason)
    return Energy("nvml" if kind == "gpu" else "rapl", tuple(c.name for c in found))


def counters(
    kind: str, powercap: Path = _POWERCAP, load: Callable[[str], Any] = ctypes.CDLL
) -> tuple[Sequence[Counter], str]:
    """Return the counters of this machine's `cpu` or `gpu` that do not overlap, or why none."""
    return _gpus(load) if kind == "gpu" else _zones(powercap)


@contextlib.contextmanager
def measured(counting: Sequence[Counter]) -> Iterator[Used]:
    """Measure what the block uses. One of more than the counters' range (minutes) is too long."""
    before = [counter.joules() for counter in counting]
    used = Used()
    yield used
    for counter, since in zip(counting, before, strict=True):
        used.joules += counter.joules(since) - since


def _zones(powercap: Path) -> tuple[Sequence[Counter], str]:
    """Return packages, and their memory where it is counted apart; cores are in the packages."""
    folders = sorted(powercap.glob("intel-rapl:*"))
    if not folders:
        return (), f"no RAPL zones in {powercap}"
    zones = []
    for folder in folders:
        file = folder / "energy_uj"
        try:
            name = (folder / "name").read_text().strip()
            if not name.startswith(("package", "dram")):
                continue
            file.read_text()
            size = int((folder / "max_energy_range_uj").read_text())
        except (OSError, ValueError) as error:
            return (), f"{file} cannot be read: {error}"
        zones.append(RaplZone(name, file, size))
    return zones, "" if zones else f"no RAPL zone of a package in {powercap}"


def _gpus(load: Callable[[str], Any]) -> tuple[Sequence[Counter], str]:
    """Return the first GPU."""
    try:
        library = load(_NVML)
    except OSError as error:
        return (), f"NVML cannot be loaded: {error}"
    handle = ctypes.c_void_p()
    status = library.nvmlInit_v2() or library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(handle))
    if status:
        return (), f"NVML finds no GPU, error {status}"
    gpu = NvmlGpu("gpu-0", library, handle)
    try:
        gpu.joules()
    except OSError as error:
        return (), str(error)
    return (gpu,), ""

"""Energy counters on machines of paper: what can be read, why not, and joules across a wrap."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import pytest

from metadef.device.spec import Energy
from metadef.measure.energy import counters, energy_of, measured


def zone(root: Path, folder: str, name: str, microjoules: int) -> Path:
    """Write a zone as powercap shows it; return its counter."""
    (root / folder).mkdir(parents=True)
    (root / folder / "name").write_text(f"{name}\n")
    (root / folder / "max_energy_range_uj").write_text("10000000\n")
    (root / folder / "energy_uj").write_text(f"{microjoules}\n")
    return root / folder / "energy_uj"


def test_packages_and_their_memory_count_and_cores_do_not_twice(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 9_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 5_000_000)
    memory = zone(tmp_path, "intel-rapl:0:1", "dram", 1_000_000)
    assert energy_of("cpu", tmp_path) == Energy("rapl", ("package-0", "dram"))
    found, _ = counters("cpu", tmp_path)
    with measured(found) as used:
        package.write_text("500000\n")  # it has wrapped at 10 J
        memory.write_text("1250000\n")
    assert used.joules == pytest.approx(1.5 + 0.25)


def test_no_counter_has_a_reason_and_no_figure(tmp_path: Path) -> None:
    none = energy_of("cpu", tmp_path)
    assert none == Energy("none", reason=f"no RAPL zones in {tmp_path}")
    zone(tmp_path, "intel-rapl:0", "psys", 1)
    assert energy_of("cpu", tmp_path).reason == f"no RAPL zone of a package in {tmp_path}"
    zone(tmp_path, "intel-rapl:1", "package-0", 1).unlink()
    assert "intel-rapl:1/energy_uj cannot be read" in energy_of("cpu", tmp_path).reason


class Nvml:
    """As NVML's library: a GPU that has used 1.5 J."""

    def __init__(self, status: int = 0) -> None:
        self.status = status

    def nvmlInit_v2(self) -> int:
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, handle: Any) -> int:
        return 0

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: Any, millijoules: Any) -> int:
        ctypes.cast(millijoules, ctypes.POINTER(ctypes.c_ulonglong))[0] = 1500
        return self.status


def test_a_gpu_says_its_energy_through_nvml() -> None:
    assert energy_of("gpu", load=lambda name: Nvml()) == Energy("nvml", ("gpu-0",))
    (counter,), _ = counters("gpu", load=lambda name: Nvml())
    assert counter.joules() == 1.5
    assert "error 3" in energy_of("gpu", load=lambda name: Nvml(status=3)).reason

    def absent(name: str) -> None:
        raise OSError(f"{name}: cannot open")

    assert energy_of("gpu", load=absent).reason.startswith("NVML cannot be loaded: libnvidia-ml")

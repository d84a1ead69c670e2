"""Find out what this machine is: LLVM's host detection, /proc, sysfs caches, cgroup limits."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from metadef.device.figures import figures
from metadef.device.instructions import find_instructions, find_vectors, native_types
from metadef.device.peak import fma_units, with_peak
from metadef.device.spec import Cache, DeviceSpec


@dataclass(frozen=True)
class Cpu:
    """What LLVM says of a processor; `features` as in `+avx512f,-sse4a`."""

    triple: str
    cpu: str
    features: str


@dataclass(frozen=True)
class Host(Cpu):
    """What LLVM and the operating system say at once; the rest is read from files."""

    processors: frozenset[int]


@functools.cache
def probe() -> DeviceSpec:
    """Return this machine's spec, probed once a process."""
    return probe_host(host_of(ask_llvm()))


def ask_llvm() -> Cpu:
    """Ask LLVM for this machine's CPU."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    return Cpu(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def host_of(cpu: Cpu) -> Host:
    """Ask the system for the processors, of this kind, that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        processors = frozenset(os.sched_getaffinity(0))
    else:
        processors = frozenset(range(os.cpu_count() or 1))
    return Host(cpu.triple, cpu.cpu, cpu.features, processors)


def probe_host(host: Host, root: Path = Path("/")) -> DeviceSpec:
    """Return the spec of `host`, with /proc and /sys read below `root`.

    What cannot be found out stays out: no caches where sysfs has none, no clock where none is told.
    """
    enabled = frozenset(f[1:] for f in host.features.split(",") if f.startswith("+"))
    architecture = host.triple.partition("-")[0]
    bits, registers = find_vectors(architecture, enabled)
    threads = min(len(host.processors), _processor_limit(root) or len(host.processors))
    caches = _caches(root, host.processors)
    spec = DeviceSpec(
        name=_model_name(root) or host.cpu or architecture,
        kind="cpu",
        triple=host.triple,
        cpu=host.cpu,
        features=host.features,
        cores=min(_cores(root, host.processors), threads),
        threads=threads,
        vector_bits=bits,
        vector_registers=registers,
        instructions=find_instructions(architecture, enabled),
        caches=caches,
        memory_bytes=_memory(root),
        types=native_types(architecture, enabled),
        alignment=max([bits // 8, *(c.line_bytes for c in caches)]),
        fma_units=fma_units(host.cpu, bits),
        source="this machine: LLVM's host detection, /proc, sysfs",
        theoretical=figures(clock_hz=_clock(root, min(host.processors))),
    )
    return with_peak(spec)


def _model_name(root: Path) -> str | None:
    """Return the CPU's name in /proc/cpuinfo (x86), or the board's in the device tree (ARM)."""
    name = _cpuinfo(root, "model name")
    board = _read(root / "proc/device-tree/model")
    return name or (board.rstrip("\0") if board else None)


def _clock(root: Path, processor: int) -> float | None:
    """Return the highest clock in Hz that cpufreq allows (/proc/cpuinfo tells this moment's)."""
    khz = _read(root / f"sys/devices/system/cpu/cpu{processor}/cpufreq/cpuinfo_max_freq")
    return float(khz) * 1e3 if khz and khz.isdigit() and int(khz) > 0 else None


def _cpuinfo(root: Path, key: str) -> str | None:
    for line in (_read(root / "proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _cores(root: Path, processors: Iterable[int]) -> int:
    """Count distinct cores; a processor whose core nobody tells counts as one."""
    found = set()
    for p in processors:
        topology = root / f"sys/devices/system/cpu/cpu{p}/topology"
        core = _read(topology / "core_id")
        found.add((_read(topology / "physical_package_id"), core) if core else p)
    return len(found)


def _caches(root: Path, processors: frozenset[int]) -> tuple[Cache, ...]:
    """Return the data and unified caches of the first processor, nearest first.

    A cache counts as shared by those of its processors that this process may use.
    """
    caches = []
    folder = root / f"sys/devices/system/cpu/cpu{min(processors)}/cache"
    for index in sorted(folder.glob("index*")):
        size, level = _read(index / "size"), _read(index / "level")
        if not size or not level or _read(index / "type") == "Instruction":
            continue
        sharing = _processor_list(_read(index / "shared_cpu_list") or "") & processors
        caches.append(
            Cache(
                level=int(level),
                bytes=_bytes(size),
                line_bytes=int(_read(index / "coherency_line_size") or 64),
                shared_by=max(1, len(sharing)),
            )
        )
    return tuple(sorted(caches, key=lambda c: c.level)) or _libc_caches(root)


def _libc_caches(root: Path) -> tuple[Cache, ...]:
    """Ask the C library, which asks the CPU: some virtual machines show no caches in sysfs."""
    if root != Path("/"):
        return ()
    caches = []
    for level, name in ((1, "LEVEL1_DCACHE"), (2, "LEVEL2_CACHE"), (3, "LEVEL3_CACHE")):
        size, line = (_sysconf(f"SC_{name}_{what}") for what in ("SIZE", "LINESIZE"))
        if size > 0:
            caches.append(Cache(level, size, line if line > 0 else 64, 1))
    return tuple(caches)


def _sysconf(name: str) -> int:
    return os.sysconf(name) if name in os.sysconf_names else 0


def _memory(root: Path) -> int:
    """Return the bytes that this process may use: the machine's, or less by its cgroup."""
    sizes = []
    for line in (_read(root / "proc/meminfo") or "").splitlines():
        if line.startswith("MemTotal:"):
            sizes.append(int(line.split()[1]) * 1024)
    if not sizes and root == Path("/"):
        sizes.append(_sysconf("SC_PAGE_SIZE") * _sysconf("SC_PHYS_PAGES"))
    for folder in _cgroups(root, "memory"):
        for file in ("memory.max", "memory.limit_in_bytes"):
            limit = _read(folder / file)
            if limit and limit.isdigit():
                sizes.append(int(limit))
    return max(1, min(sizes, default=1))


def _processor_limit(root: Path) -> int | None:
    """Return how many processors' time the cgroup allows, rounded up; None for no limit."""
    limits = []
    for folder in _cgroups(root, "cpu"):
        quota, _, period = (_read(folder / "cpu.max") or "").partition(" ")
        if not quota:
            quota = _read(folder / "cpu.cfs_quota_us") or ""
            period = _read(folder / "cpu.cfs_period_us") or ""
        if quota.isdigit() and period.isdigit() and int(period) > 0:
            limits.append(max(1, -(-int(quota) // int(period))))
    return min(limits, default=None)


def _cgroups(root: Path, controller: str) -> list[Path]:
    """Return the folders of this process' cgroup and its parents, of version 2 and 1 alike."""
    folders = []
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / controllers
        inner = mount / path.lstrip("/")
        folders += [inner, *(p for p in inner.parents if mount in (p, *p.parents))]
    return folders


def _processor_list(text: str) -> frozenset[int]:
    """Return the numbers in sysfs' `0-3,8`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _bytes(text: str) -> int:
    """Return the bytes of sysfs' `32K`."""
    unit = {"K": 2**10, "M": 2**20, "G": 2**30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * unit


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


if __name__ == "__main__":  # for a process that does not want LLVM in its memory
    print(json.dumps(asdict(ask_llvm())))

"""The devices that users name; this machine's without LLVM in memory, as the cache keeps it."""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
from pathlib import Path

from metadef.codegen.version import compiler_version
from metadef.codegen.workers import command, environment
from metadef.device.probe import Cpu, ask_llvm, host_of, probe_host
from metadef.device.shipped import HOST, load_device
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError

from .cache import Cache, default_cache

_CPUINFO = Path("/proc/cpuinfo")
#: how its lines start that say what kind of processor there is, on x86, ARM and RISC-V
_TELLING = (
    *("vendor_id", "cpu family", "model", "stepping", "flags"),
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features", "isa", "uarch"),
)


def device_named(device: DeviceSpec | str | Path | None) -> DeviceSpec:
    """Return the device that a user names: None and `host` are this machine; or a descriptor's
    path, or the name of a shipped one.

    Raises:
        MetadefError: neither a spec nor a name, or the descriptor's file is not a good one.
    """
    if device is None or device == HOST:
        return this_device()
    if isinstance(device, DeviceSpec):
        return device
    if not isinstance(device, str | Path):
        raise MetadefError(
            "device: expected a DeviceSpec, the path of a descriptor or the name of a shipped one, "
            f"got {type(device).__name__}"
        )
    return load_device(device)


@functools.cache
def this_device() -> DeviceSpec:
    """Return this machine's spec, found out once a process."""
    return probe_host(host_of(this_cpu(default_cache())))


def this_cpu(cache: Cache) -> Cpu:
    """Return what LLVM says of this machine's CPU; another process asks it.

    Raises:
        MetadefError: that process failed.
    """
    looks = _looks()
    if looks is None:
        return ask_llvm()
    key = hashlib.sha256(f"cpu\n{compiler_version()}\n{looks}".encode()).hexdigest()
    content = cache.get(key)
    if content is None:
        content = _asked_elsewhere()
        cache.put(key, content)
    return Cpu(**json.loads(content))


def _asked_elsewhere() -> bytes:
    asked = command("metadef.device.probe")
    done = subprocess.run(asked, env=environment(), capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or "nothing on standard error"
        raise MetadefError(
            f"this machine's CPU: expected `{' '.join(asked)}` to tell it, got exit code "
            f"{done.returncode}: {said}; pass the device's descriptor instead (device=...)"
        )
    return done.stdout


def _looks() -> str | None:
    """Return what tells this machine's processors from others; None where no file says it."""
    try:
        lines = _CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return None
    telling = {line for line in lines if line.startswith(_TELLING)}
    return "\n".join(sorted(telling)) or None

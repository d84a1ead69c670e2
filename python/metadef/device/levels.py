"""The memory levels of a device, nearest first: `l1`, `l2`, ..., `memory`."""

from __future__ import annotations

from metadef.device.spec import DeviceSpec

MEMORY = "memory"


def level_names(spec: DeviceSpec) -> tuple[str, ...]:
    """Return the names of the levels, as in `Figures.bandwidth`."""
    return (*(f"l{cache.level}" for cache in spec.caches), MEMORY)


def capacities(spec: DeviceSpec, threads: int) -> dict[str, int]:
    """Return the bytes that `threads` threads, on cores of their own, hold together in each level.

    A cache that several hardware threads share counts once for them all.
    """
    sizes = {f"l{c.level}": c.bytes * -(-threads // c.shared_by) for c in spec.caches}
    return {**sizes, MEMORY: spec.memory_bytes}

"""How many bytes a cycle a core gets, where it was measured and where it was not."""

from __future__ import annotations

from metadef.device.levels import MEMORY
from metadef.device.spec import DeviceSpec

#: of a level that was not measured
_BYTES_A_CYCLE = {"l1": 64.0, "l2": 32.0, "l3": 16.0, MEMORY: 5.0}


def bytes_a_cycle(device: DeviceSpec, held: int) -> float:
    """Return the bytes a cycle of the nearest cache that holds `held` bytes, or of memory."""
    fitting = (f"l{cache.level}" for cache in device.caches if held <= cache.bytes)
    level = next(fitting, MEMORY)
    bandwidth, clock = device.measured.bandwidth.get(level), device.measured.clock_hz
    if bandwidth and clock:
        return bandwidth / clock / device.cores
    return _BYTES_A_CYCLE.get(level, _BYTES_A_CYCLE["l3"])

"""The roofline of a kernel alone: arithmetic, the level that has its data, starting the threads."""

from __future__ import annotations

from metadef.cost.roofline import Bound, bound
from metadef.cost.table.measurement import Measurement
from metadef.device.figures import Figures
from metadef.device.levels import capacities
from metadef.device.spec import DeviceSpec

#: what it takes to begin and end a kernel where nobody measured it, in ns
_LAUNCH_NS = 100.0
LAUNCH = "launch"


def roofline(about: Measurement, spec: DeviceSpec, limits: Figures) -> Bound:
    """Return the least ns of one run, and what sets it: an element type, a level, or `launch`.

    With one copy the data is in the nearest level that holds all of it, with more in memory.
    """
    traffic = dict.fromkeys(capacities(spec, about.threads), 0)
    traffic[home(about, spec)] = round(moved(about))
    element = "f64" if "f64" in about.precision else "f32"
    operations = {element: round(about.features.get("flops", 0))}
    found = bound(operations, traffic, limits, about.threads)
    launch = launch_ns(about.threads, limits)
    return found if found.ns >= launch else Bound(launch, LAUNCH)


def moved(about: Measurement) -> float:
    """Return the bytes of arguments and results."""
    return about.features.get("argument_bytes", 0) + about.features.get("result_bytes", 0)


def home(about: Measurement, spec: DeviceSpec) -> str:
    """Return the memory level in which a kernel finds its data."""
    levels = capacities(spec, about.threads)
    *caches, memory = levels
    if about.copies > 1:
        return memory
    return next((level for level in caches if moved(about) <= levels[level]), memory)


def launch_ns(threads: int, limits: Figures) -> float:
    """Return the ns that a kernel takes which has nothing to do."""
    barrier = limits.value("barrier_ns", "", threads) if threads > 1 else None
    return max(_LAUNCH_NS, barrier or 0.0)

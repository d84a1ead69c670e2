"""Fills a device's descriptor on the machine that it describes: traits, and what is reached."""

from __future__ import annotations

import dataclasses
import functools

from metadef.device.figures import Figures
from metadef.device.spec import DeviceSpec, from_data, to_data
from metadef.diagnostics import DeviceError

from .bench import Effort
from .energy import energy_of
from .limits import Progress, measure_limits

#: enough to see what kind of machine it is
QUICK = Effort(warm_up=1, rounds=5, tries=1)


def describe(
    spec: DeviceSpec,
    threads: int | None = None,
    *,
    effort: Effort | None = None,
    progress: Progress | None = None,
) -> DeviceSpec:
    """Return the spec of this machine with what was measured of it, by one thread and by all.

    With fewer `threads` than the machine has, that part of it is described. Figures that no
    hardware can have are measured again, once.

    Raises:
        DeviceError: more threads than there are, or impossible figures again, as on a machine that
            does other work.
        MetadefError: there is no back end for the device.
    """
    if threads is not None and threads > spec.threads:
        raise DeviceError(f"threads: expected at most the {spec.threads} of here, got {threads}")
    if threads is not None and threads < spec.threads:
        spec = dataclasses.replace(spec, threads=threads, cores=min(threads, spec.cores))
    spec = dataclasses.replace(spec, energy=energy_of(spec.kind))
    try:
        return _measured(spec, effort, progress)
    except DeviceError:  # something else slowed one of the measurements down
        return _measured(spec, effort, progress)


def _measured(spec: DeviceSpec, effort: Effort | None, progress: Progress | None) -> DeviceSpec:
    """Measure with one thread and with all.

    Raises:
        DeviceError: no hardware can have these figures.
    """
    found = [
        measure_limits(spec, threads, effort=effort, progress=progress)
        for threads in dict.fromkeys((1, spec.threads))
    ]
    described = dataclasses.replace(spec, measured=functools.reduce(Figures.merged, found))
    return from_data(
        to_data(described), "measured beside other work; measure again when there is none"
    )

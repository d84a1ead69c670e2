"""Fills a device's descriptor on the machine that it describes: traits, and what is reached."""

from __future__ import annotations

import dataclasses

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

    With fewer `threads` than the machine has, that part of it is described.

    Raises:
        DeviceError: more threads than there are, or figures that no hardware can have, as when
            something else slowed a measurement down.
        MetadefError: there is no back end for the device.
    """
    if threads is not None and threads > spec.threads:
        raise DeviceError(f"threads: expected at most the {spec.threads} of here, got {threads}")
    if threads is not None and threads < spec.threads:
        spec = dataclasses.replace(spec, threads=threads, cores=min(threads, spec.cores))
    spec = dataclasses.replace(spec, energy=energy_of(spec.kind))
    measured = measure_limits(spec, 1, effort=effort, progress=progress)
    if spec.threads > 1:
        measured = measured.merged(
            measure_limits(spec, spec.threads, effort=effort, progress=progress)
        )
    described = dataclasses.replace(spec, measured=measured)
    return from_data(
        to_data(described), "measured beside other work; measure again when there is none"
    )

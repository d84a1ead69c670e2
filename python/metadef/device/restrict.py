"""What code a machine runs, and one machine as several devices: code kept to a lesser CPU's."""

from __future__ import annotations

import dataclasses

from metadef.device.figures import Figures
from metadef.device.peak import fma_units, with_peak
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import DeviceError


def restricted(machine: DeviceSpec, level: DeviceSpec) -> DeviceSpec:
    """Return the machine with the CPU, features, vectors and instructions of `level`.

    Caches, cores, memory and clock stay the machine's, so what is measured of it is real. What was
    measured of the machine itself is left out.

    Raises:
        DeviceError: another architecture, or the machine lacks features of the level; names them.
    """
    check_runs(level, machine)
    clock = tuple(f for f in machine.theoretical.entries if f.quantity != "flops")
    return with_peak(
        dataclasses.replace(
            machine,
            name=f"{machine.name}, code of {level.cpu}",
            cpu=level.cpu,
            features=level.features,
            vector_bits=level.vector_bits,
            vector_registers=level.vector_registers,
            instructions=level.instructions,
            types=level.types,
            fma_units=fma_units(machine.cpu, level.vector_bits),
            source=f"{machine.source}; code generation restricted to {level.cpu}",
            theoretical=Figures(clock),
            measured=Figures(),
        )
    )


def check_runs(device: DeviceSpec, machine: DeviceSpec) -> None:
    """Check that a machine runs code for a device, by architecture and features.

    Raises:
        DeviceError: it does not; names the features that it lacks.
    """
    architecture, wanted = (spec.triple.partition("-")[0] for spec in (machine, device))
    if device.kind != machine.kind or architecture != wanted:
        raise DeviceError(
            f"device '{device.name}': its code needs a {device.kind} of {wanted}, "
            f"and this machine is a {machine.kind} of {architecture}"
        )
    missing = sorted(_enabled(device) - _enabled(machine))
    if missing:
        raise DeviceError(
            f"device '{device.name}': its code needs {', '.join(missing)}, "
            f"which this machine, {machine.name} ({machine.cpu}), lacks"
        )


def _enabled(spec: DeviceSpec) -> set[str]:
    return {feature[1:] for feature in spec.features.split(",") if feature.startswith("+")}

"""A CPU's theoretical peak: cores * clock * units * lanes * 2, where all of these are known."""

from __future__ import annotations

import dataclasses

from metadef.device.figures import Figure
from metadef.device.spec import DeviceSpec

#: pipes of a core that start a multiply-add each cycle, and the bits of one, by LLVM's name of the
#: CPU (vendors' optimisation guides). CPUs whose models differ in it are not here.
_PIPES = {
    "znver1": (2, 128),
    "znver2": (2, 256),
    "znver3": (2, 256),
    "znver4": (2, 256),
    "haswell": (2, 256),
    "broadwell": (2, 256),
    "skylake": (2, 256),
    "cortex-a76": (2, 128),
    "neoverse-n1": (2, 128),
}
_BITS = {"f32": 32, "f64": 64}


def fma_units(cpu: str, vector_bits: int) -> int | None:
    """Return the multiply-adds of whole vectors that a core of the CPU starts in a cycle."""
    if cpu not in _PIPES:
        return None
    pipes, bits = _PIPES[cpu]
    return pipes if vector_bits <= bits else pipes * bits // vector_bits or None


def with_peak(spec: DeviceSpec) -> DeviceSpec:
    """Return the spec with the theoretical flops that follow from its clock, units and vectors."""
    clock, units = spec.theoretical.clock_hz, spec.fma_units
    if clock is None or units is None:
        return spec
    rate = spec.cores * clock * units * 2
    made = [
        Figure("flops", element, rate * (spec.vector_bits // bits))
        for element, bits in _BITS.items()
        if spec.instruction("fma", element) and element not in spec.theoretical.flops
    ]
    entries = (*spec.theoretical.entries, *made)
    theoretical = dataclasses.replace(spec.theoretical, entries=entries)
    return dataclasses.replace(spec, theoretical=theoretical)

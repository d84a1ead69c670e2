"""Which layout an op over windows gets: by cost, or as the module's plan wants."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from metadef import ir
from metadef.cost.layout import LAYOUTS, NCHW, NHWC, Windows, cheapest_layout
from metadef.device import attribute as device
from metadef.device.spec import Cache, DeviceSpec
from metadef.diagnostics import location_text, near_names
from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.symbolic import Dim

from ._buffers import element_bytes
from ._convolution_figures import convolution_of, fourier_problem, image_problem
from ._fourier_convolution import spectra_cycles
from ._layout import Sweep, typical
from ._permutations import to_channels_first
from ._planned import has_plan, note_decision, wanted
from ._structure import operation_key

#: what a plan calls such decisions
KIND = "layout"
#: what is priced for where no device is known
_ANY_DEVICE = DeviceSpec(
    name="any", kind="cpu", triple="", cpu="", features="", cores=1, threads=1, vector_bits=512,
    vector_registers=32, instructions=(), memory_bytes=1 << 34,
    caches=(Cache(1, 1 << 15, 64, 1), Cache(2, 1 << 20, 64, 1), Cache(3, 1 << 25, 64, 1)),
    types=(), alignment=64,
)  # fmt: skip


class Layouts:
    """The decisions for one module."""

    def __init__(self, module: ir.Operation) -> None:
        self.module = module
        known = device.ATTRIBUTE in module.attributes
        self.spec = device.of(module) if known else _ANY_DEVICE
        self.planned = has_plan(module)

    def layout_of(self, sweep: Sweep, op: Any) -> str:
        """Return the layout for a convolution or pool of plain images: by cost, where a plan wants
        nothing that can be. Note the decision, where there is a plan."""
        chosen = cheapest_layout(_windows(sweep, op, self.spec), self.spec)
        if not self.planned:
            return chosen
        key = operation_key(op)
        refused = []
        for choice in wanted(self.module, KIND, key):
            if choice in LAYOUTS:
                chosen = choice
                break
            near = near_names(choice, LAYOUTS)
            problem = f'{KIND} = "{choice}" is none of {", ".join(LAYOUTS)}{near}'
            place = location_text(op.location)
            refused.append(f"'{op.operation.name}' op: {problem}; from {place}")
        note_decision(self.module, KIND, key, op, chosen, refused)
        return chosen


def _windows(sweep: Sweep, op: Any, spec: DeviceSpec) -> Windows:
    """Return the figures of a convolution or pool of plain images."""
    x, result = shape_of(op.operands[0]), shape_of(op.results[0])
    there = sweep.cost_of(op.operands[0], to_channels_first(x.rank))
    is_conv = op.operation.name == "metadef.conv"
    outputs, per_group = shape_of(op.operands[1]).dims[:2] if is_conv else (result.dims[1], ONE)
    groups = integer(op, "groups") if is_conv else 1
    depthwise = groups > 1 and per_group == ONE and outputs == Dim.of(groups)
    taps = shape_of(op.operands[1]).dims[1:] if is_conv else integers(op, "kernel")
    return Windows(
        steps=prod(map(typical, result.dims)) * prod(typical(Dim.of(n)) for n in taps),
        channels=typical(outputs if depthwise else outputs // groups),
        summed=typical(per_group),
        row=typical(result.dims[-1]),
        stride=integers(op, "strides")[-1],
        point=is_conv and is_pointwise(op),
        moved={NHWC: max(0, there), NCHW: max(0, -there)},
        element_bytes=element_bytes(x.element),
        tiled=_cycles_by_spectra(sweep, op, spec),
    )


def _cycles_by_spectra(sweep: Sweep, op: Any, spec: DeviceSpec) -> float:
    """Return what a convolution by spectra costs with channels last, without end where it cannot
    be."""
    if op.operation.name != "metadef.conv" or image_problem(op) or fourier_problem(op, sweep.once):
        return inf
    return min(spectra_cycles(convolution_of(op, typical), spec).values(), default=inf)


def is_pointwise(op: Any) -> bool:
    """Tell whether a convolution's windows are one element each, one apart."""
    return (
        all(d == ONE for d in shape_of(op.operands[1]).dims[2:])
        and all(s == 1 for s in integers(op, "strides"))
        and not any(integers(op, "padding"))
    )

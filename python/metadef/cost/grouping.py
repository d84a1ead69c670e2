"""What products of one operand cost each alone, and as one over weights side by side, in cycles.

    product = max(arithmetic, weights) + rows read + a dispatch
    arithmetic = rounds(boxes) * box rows * box vectors * depth / multiply-adds a cycle
    weights = rounds(panels) * depth * panel bytes / bytes a cycle

A box is a register block of rows by a panel of outputs; `rounds(n)` = ceil(n / cores) is what the
core with the most of them does, so a narrow product leaves cores idle and fills its last panel
badly. Apart, each product is such a sum. Grouped it is one, and what cannot read a part of the
result in place costs a pass over that part: read, written, and a dispatch.
"""

from __future__ import annotations

from dataclasses import dataclass

from metadef.cost.rates import bytes_a_cycle
from metadef.device.spec import DeviceSpec

#: vectors side by side in a register block, which a panel of packed weights is wide
_PANEL_VECTORS = 2
#: vector multiply-adds a cycle where the device does not say
_RATE = 2
#: cycles that a dispatch and its barrier take
_DISPATCH = 1000.0
#: less than this part of the time is not worth another form
LEAST_GAIN = 0.1


@dataclass(frozen=True)
class Siblings:
    """Products of one operand [rows, depth] with weights [depth, n], n in `outputs`.

    `element_bytes` is the size of an element; `passes` are the elements of each part that would go
    through a pass of their own if the parts were one result; `held` are the bytes of all weights
    that a call goes through.
    """

    rows: int
    depth: int
    outputs: tuple[int, ...]
    element_bytes: int
    held: int
    passes: tuple[int, ...] = ()


def apart_cycles(siblings: Siblings, device: DeviceSpec) -> float:
    """Return the cost of a product for each weight."""
    return sum(_product(siblings, n, device) for n in siblings.outputs)


def grouped_cycles(siblings: Siblings, device: DeviceSpec) -> float:
    """Return the cost of one product by all weights, and of what cannot read its part in place."""
    width = sum(siblings.outputs)
    rate = bytes_a_cycle(device, siblings.rows * width * siblings.element_bytes)
    moved = (2 * n * siblings.element_bytes / rate / device.cores for n in siblings.passes)
    return _product(siblings, width, device) + sum(_DISPATCH + cycles for cycles in moved)


def is_grouped(siblings: Siblings, device: DeviceSpec) -> bool:
    """Tell whether one product costs less, by enough to be worth it."""
    grouped, apart = grouped_cycles(siblings, device), apart_cycles(siblings, device)
    return grouped < (1 - LEAST_GAIN) * apart


def _product(siblings: Siblings, outputs: int, device: DeviceSpec) -> float:
    """Return the cost of a product with weights [depth, outputs], of the core with most to do."""
    size = siblings.element_bytes
    lanes = max(1, device.vector_bits // (8 * size))
    panel = _PANEL_VECTORS * lanes
    # four registers are for operands, the others for sums
    block = max(1, min(siblings.rows, (device.vector_registers - 4) // _PANEL_VECTORS))
    panels = -(-outputs // panel)
    boxes = panels * -(-siblings.rows // block)
    steps = _rounds(boxes, device) * block * _PANEL_VECTORS * siblings.depth
    arithmetic = steps / (device.fma_units or _RATE)
    streamed = _rounds(panels, device) * siblings.depth * panel * size
    weights = streamed / bytes_a_cycle(device, siblings.held)
    rows = siblings.rows * siblings.depth * size
    return max(arithmetic, weights) + rows / bytes_a_cycle(device, rows) / device.cores + _DISPATCH


def _rounds(count: int, device: DeviceSpec) -> int:
    return -(-count // device.cores)

"""What an op over windows costs with channels last (nhwc), and with plain images (nchw).

In cycles of all cores together: its arithmetic by the lanes that have work, and the images that
have to be brought into the layout first, read and written at the rate of the nearest cache that
holds them. Lanes run along the rows of the result in nchw; in nhwc along its channels, or, where
those are few, along the channels that are summed. What becomes of the result later is not known
here, and left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from metadef.cost.rates import bytes_a_cycle
from metadef.device.spec import DeviceSpec

NHWC, NCHW = "nhwc", "nchw"
LAYOUTS = (NHWC, NCHW)
#: vector instructions a cycle: of a sum over channels, whose operands wait in registers; of windows
#: of one channel each, which are loaded for each step
_PRODUCT_RATE, _WINDOW_RATE = 2.0, 1.0
#: of a sum over channels with both operands loaded for each product: plain images, lanes of the sum
_LOADING_RATE = 1.0
#: what one more dispatch and its barrier take each core
_DISPATCH = 1000.0
#: lanes up to so many elements apart are picked from whole vectors, others loaded one by one
_MOST_APART = 4


@dataclass(frozen=True)
class Windows:
    """An op over windows: `steps` are its multiply-adds, or what it folds.

    Each group has `channels` in the result, whose elements are sums over `summed` channels of the
    image (1: there are no others). Rows have `row` elements, `stride` apart in the image. `point`:
    windows are one element each, so that it is a product either way. `moved` has the bytes that
    bring the image into each layout, `tiled` the cycles by spectra, which need channels last.
    """

    steps: int
    channels: int
    summed: int
    row: int
    stride: int
    point: bool
    moved: Mapping[str, int]
    element_bytes: int = 4
    tiled: float = math.inf


def layout_cycles(op: Windows, layout: str, device: DeviceSpec) -> float:
    """Return the cost of an op in a layout."""
    lanes = device.vector_bits // (8 * op.element_bytes)
    if layout == NHWC or op.point:
        rate = _PRODUCT_RATE if op.summed > 1 else _WINDOW_RATE
        cycles = _vectors(op.steps, op.channels, lanes) / rate
        if op.summed > 1:
            cycles = min(cycles, _vectors(op.steps, op.summed, lanes) / _LOADING_RATE)
        cycles = min(cycles, op.tiled)
    else:
        rate = _LOADING_RATE if op.summed > 1 else _WINDOW_RATE
        loads = op.stride if op.stride <= _MOST_APART else lanes
        cycles = _vectors(op.steps, op.row, lanes) * loads / rate
    moved = op.moved[layout]
    if moved:
        cycles += 2 * moved / bytes_a_cycle(device, moved) + _DISPATCH * device.cores
    return cycles


def _vectors(steps: int, along: int, lanes: int) -> float:
    """Return the vectors for `steps` elements in runs of `along`, the last of each perhaps partly
    empty."""
    return steps / max(1, along) * -(-along // lanes)


def cheapest_layout(op: Windows, device: DeviceSpec) -> str:
    """Return the layout that costs least."""
    return min(LAYOUTS, key=lambda layout: layout_cycles(op, layout, device))

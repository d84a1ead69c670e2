"""What a 3x3 convolution costs each way, in cycles of a core: directly, and by Winograd's tiles.

Arithmetic counts at the rate of the vector unit and bytes at that of the level they come from,
added up. What both ways move alike, image and result, is left out. Weights come from memory: a
model's other weights have passed through the caches since the last call.
"""

from __future__ import annotations

from dataclasses import dataclass

from metadef.cost.rates import bytes_a_cycle
from metadef.device.spec import DeviceSpec
from metadef.dialects.metadef.winograd import (
    LEAST_CHANNELS,
    WINDOW,
    inputs_of,
    steps,
    transforms,
)

#: vector instructions a cycle: multiply-adds of a product, whose operands wait in registers, and
#: those of a transform, which loads and stores about as much as it computes
_PRODUCT_RATE = 2.0
_TRANSFORM_RATE = 1.0
#: what two more dispatches and their barriers take
_DISPATCHES = 2000.0
_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Convolution:
    """A 3x3 convolution in f32 of `batch` images to `height` x `width` outputs, one apart."""

    batch: int
    height: int
    width: int
    channels: int
    outputs: int

    def tiles(self, side: int) -> int:
        """Return how many tiles of `side` x `side` outputs cover the images."""
        return self.batch * -(-self.height // side) * -(-self.width // side)


def direct_cycles(conv: Convolution, device: DeviceSpec) -> float:
    """Return the cost of summing over the windows."""
    products = WINDOW**2 * conv.channels * conv.outputs
    pixels = conv.batch * conv.height * conv.width
    arithmetic = pixels * products / (_lanes(device) * _PRODUCT_RATE)
    return arithmetic + _traffic(products * _ELEMENT_BYTES, device.memory_bytes, device)


def winograd_cycles(conv: Convolution, side: int, device: DeviceSpec) -> float:
    """Return the cost with tiles of `side` x `side` outputs: two transforms around the products.

    The transformed tiles are written and read again, before the products and after them, in the
    nearest cache that holds them. The transformed weights are ((side + 2) / 3)^2 times as large.
    """
    tiles, count = conv.tiles(side), inputs_of(side) ** 2
    matrices = transforms(side)
    products = count * conv.channels * conv.outputs
    weights = _traffic(products * _ELEMENT_BYTES, device.memory_bytes, device)
    arithmetic = tiles * products / _PRODUCT_RATE
    moved = _DISPATCHES
    for matrix, channels in ((matrices.input, conv.channels), (matrices.output, conv.outputs)):
        arithmetic += tiles * channels * steps(matrix, len(matrix[0])) / _TRANSFORM_RATE
        size = tiles * count * channels * _ELEMENT_BYTES
        moved += _traffic(2 * size, size, device)
    return arithmetic / _lanes(device) + weights + moved


def cheapest_tile(conv: Convolution, device: DeviceSpec) -> int:
    """Return the side of the tiles that cost least, of those that are accurate enough."""
    sides = [side for side, least in LEAST_CHANNELS.items() if conv.channels >= least]
    return min(sides, key=lambda side: winograd_cycles(conv, side, device))


def _lanes(device: DeviceSpec) -> float:
    return device.vector_bits / (8 * _ELEMENT_BYTES)


def _traffic(moved: int, held: int, device: DeviceSpec) -> float:
    """Return the cycles to move bytes in the nearest cache that holds `held` bytes, or memory."""
    return moved / bytes_a_cycle(device, held)

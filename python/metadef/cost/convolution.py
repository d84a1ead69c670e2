"""What a convolution costs each way, in a core's cycles: directly, by Winograd's tiles, by spectra.

Arithmetic counts at the rate of the vector unit and bytes at that of the level they come from,
added up. What all ways move alike, image and result, is left out. Weights come from memory: a
model's other weights have passed through the caches since the last call.
"""

from __future__ import annotations

from dataclasses import dataclass

from metadef.cost.rates import bytes_a_cycle
from metadef.device.spec import DeviceSpec
from metadef.dialects.metadef import fourier
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
#: multiply-adds of which each loads an element: a depthwise window, a product of spectra
_ELEMENT_RATE = 0.75
#: those of a spectrum whose values the registers can hold; others wait in memory in between
_SPECTRUM_RATE = 0.5
_LONG_SPECTRUM_RATE = 0.45
#: Planes of Winograd's tiles come slowly where they take more than this part of the last cache,
#: which others use, too. An element of theirs that feeds one vector of outputs then costs a load.
#: Fitted to 41 convolutions on Zen 3: what is chosen takes 1.04 times the best way's time there.
_PLANES_PART = 1 / 8
#: what two more dispatches and their barriers take
_DISPATCHES = 2000.0
_ELEMENT_BYTES = 4


@dataclass(frozen=True)
class Convolution:
    """A convolution in f32 of `batch` images to `height` x `width` outputs, one apart.

    `window` are the elements it sums along H and W, `groups` are 1 or, of one channel and output
    each, as many as channels.
    """

    batch: int
    height: int
    width: int
    channels: int
    outputs: int
    window: tuple[int, int] = (WINDOW, WINDOW)
    groups: int = 1

    @property
    def weights(self) -> int:
        """The weights at one place of the window, or point of a spectrum."""
        return self.channels * self.outputs // self.groups

    def tiles(self, side: int) -> int:
        """Return how many tiles of `side` x `side` outputs cover the images."""
        return self.batch * -(-self.height // side) * -(-self.width // side)


def direct_cycles(conv: Convolution, device: DeviceSpec) -> float:
    """Return the cost of summing over the windows."""
    rows, columns = conv.window
    pixels = conv.batch * conv.height * conv.width
    arithmetic = pixels * rows * columns * _point_cycles(conv, device)
    weights = rows * columns * conv.weights * _ELEMENT_BYTES
    return arithmetic + _traffic(weights, device.memory_bytes, device)


def winograd_cycles(conv: Convolution, side: int, device: DeviceSpec) -> float:
    """Return the cost with tiles of `side` x `side` outputs: two transforms around the products.

    The transformed tiles are written and read again, before the products and after them, in the
    nearest cache that holds them. The transformed weights are ((side + 2) / 3)^2 times as large.
    """
    tiles, count = conv.tiles(side), inputs_of(side) ** 2
    matrices = transforms(side)
    weights = count * conv.weights * _ELEMENT_BYTES
    cycles = tiles * count * _point_cycles(conv, device)
    planes = tiles * count * conv.channels * _ELEMENT_BYTES
    last = max((cache.bytes for cache in device.caches), default=0)
    if conv.outputs <= _lanes(device) and planes > _PLANES_PART * last:
        cycles *= _PRODUCT_RATE / _ELEMENT_RATE
    cycles += _traffic(weights, device.memory_bytes, device) + _DISPATCHES
    for matrix, channels in ((matrices.input, conv.channels), (matrices.output, conv.outputs)):
        instructions = tiles * steps(matrix, len(matrix[0])) * channels / _lanes(device)
        cycles += instructions / _TRANSFORM_RATE
        size = tiles * count * channels * _ELEMENT_BYTES
        cycles += _traffic(2 * size, size, device)
    return cycles


def cheapest_tile(conv: Convolution, device: DeviceSpec) -> int:
    """Return the side of the tiles that cost least, of those that are accurate enough."""
    sides = [side for side, least in LEAST_CHANNELS.items() if conv.channels >= least]
    return min(sides, key=lambda side: winograd_cycles(conv, side, device))


def fourier_cycles(conv: Convolution, length: int, device: DeviceSpec) -> float:
    """Return the cost with tiles of `length` inputs along each axis that the window spans.

    A tile of t inputs gives t - window + 1 outputs from 3 t / 2 - 1 points. Along each axis the
    points are written and read again, before the products and after them, in the nearest cache that
    holds both; there are weights for every point.
    """
    there, back = fourier.steps(length)
    # A pixel's last vector may be filled in part.
    there *= -(-conv.channels // _lanes(device))
    back *= -(-conv.outputs // _lanes(device))
    rate = _SPECTRUM_RATE if length <= device.vector_registers else _LONG_SPECTRUM_RATE
    places, points, cycles = [conv.height, conv.width], 1, 0.0
    for axis, window in enumerate(conv.window):
        if window == 1:
            continue
        places[axis] = -(-places[axis] // (length - window + 1))
        tiles = points * conv.batch * places[0] * places[1]
        size = tiles * fourier.points_of(length) * (conv.channels + conv.outputs) * _ELEMENT_BYTES
        cycles += tiles * (there + back) / rate + _traffic(2 * size, size, device)
        cycles += _DISPATCHES
        points *= fourier.points_of(length)
    cycles += conv.batch * places[0] * places[1] * points * _point_cycles(conv, device)
    weights = points * conv.weights * _ELEMENT_BYTES
    return cycles + _traffic(weights, device.memory_bytes, device)


def _point_cycles(conv: Convolution, device: DeviceSpec) -> float:
    """Return the cost of one pixel's or tile's channels at a place of the window, or a point."""
    vectors = -(-conv.outputs // _lanes(device))  # the last may be filled in part
    if conv.groups > 1:
        return vectors / _ELEMENT_RATE
    return conv.channels * vectors / _PRODUCT_RATE


def _lanes(device: DeviceSpec) -> int:
    return device.vector_bits // (8 * _ELEMENT_BYTES)


def _traffic(moved: int, held: int, device: DeviceSpec) -> float:
    """Return the cycles to move bytes in the nearest cache that holds `held` bytes, or memory."""
    return moved / bytes_a_cycle(device, held)

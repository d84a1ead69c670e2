"""Reference of the spatial ops without weights: pool, resample, the transforms of tiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from metadef.dialects.metadef.fourier import signal, spectrum
from metadef.dialects.metadef.winograd import inputs_of, transforms

from .linear import pad_spatial, window_view
from .sources import result_shape

Array = np.ndarray[Any, Any]
Symbols = Mapping[str, int]


def _pool(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    nhwc = op.attributes["layout"].value == "nhwc"
    if nhwc:
        x = np.moveaxis(x, -1, 1)
    kernel, padding = list(op.attributes["kernel"]), list(op.attributes["padding"])
    strides, dilations = op.attributes["strides"], op.attributes["dilations"]
    taps = tuple(range(x.ndim, x.ndim + len(kernel)))
    if op.attributes["fn"].value == "max":
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        padded = pad_spatial(x, padding, lowest)
        result = window_view(padded, kernel, strides, dilations).max(axis=taps)
    else:
        total = window_view(pad_spatial(x, padding, 0), kernel, strides, dilations).sum(axis=taps)
        inside = 1 if op.attributes["count_include_pad"].value else 0
        ones = pad_spatial(np.ones((1, 1, *x.shape[2:])), padding, inside)
        result = total / window_view(ones, kernel, strides, dilations).sum(axis=taps)
    return np.moveaxis(result, 1, -1) if nhwc else result


def cubic_weights(t: Array) -> list[Array]:
    """Return the weights of the four taps at distances -1, 0, 1, 2 for the fraction t.

    Keys, Cubic Convolution Interpolation for Digital Image Processing (1981), with a = -0.75.
    """
    a = -0.75

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def interpolation(mode: str, size: int, out: int, scale: float, align_corners: bool) -> Array:
    """Return the matrix [out, size] that resamples one dim."""
    o = np.arange(out)
    matrix = np.zeros((out, size))
    if mode == "nearest":
        matrix[o, np.clip(np.floor(o / scale).astype(int), 0, size - 1)] = 1
        return matrix
    if align_corners:
        source = o * ((size - 1) / (out - 1) if out > 1 else 0.0)
    else:
        source = (o + 0.5) / scale - 0.5
        if mode == "linear":
            source = np.maximum(source, 0)
    base = np.floor(source)
    t = source - base
    weights = [1 - t, t] if mode == "linear" else cubic_weights(t)
    first = 0 if mode == "linear" else -1
    for i, weight in enumerate(weights):
        np.add.at(matrix, (o, np.clip(base.astype(int) + first + i, 0, size - 1)), weight)
    return matrix


def _resample(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    mode, align = op.attributes["mode"].value, op.attributes["align_corners"].value
    sizes = result_shape(op, symbols)[2:]
    for i, (out, scale) in enumerate(zip(sizes, op.attributes["scales"], strict=True)):
        matrix = interpolation(mode, x.shape[i + 2], out, scale, align)
        x = np.moveaxis(np.tensordot(x, matrix, (i + 2, 1)), -1, i + 2)
    return x


def _winograd_input(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    tile = op.attributes["tile"].value
    side, matrix = inputs_of(tile), np.array(transforms(tile).input)
    _, n, rows, columns, c = result_shape(op, symbols)
    (top, _, left, _), (_, height, width, _) = list(op.attributes["padding"]), x.shape
    bottom = max((rows - 1) * tile + side - top - height, 0)
    right = max((columns - 1) * tile + side - left - width, 0)
    padded = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)))
    tiles = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(1, 2))
    tiles = tiles[:, ::tile, ::tile][:, :rows, :columns]
    return np.einsum("ah,nijchw,bw->abnijc", matrix, tiles, matrix).reshape(-1, n, rows, columns, c)


def _winograd_output(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    tile = op.attributes["tile"].value
    side, matrix = inputs_of(tile), np.array(transforms(tile).output)
    height, width = list(op.attributes["sizes"])
    _, n, rows, columns, c = x.shape
    tiles = x.reshape(side, side, n, rows, columns, c)
    image = np.einsum("ha,abnijc,wb->nihjwc", matrix, tiles, matrix)
    return image.reshape(n, rows * tile, columns * tile, c)[:, :height, :width]


class Arrays:
    """Arithmetic on arrays."""

    def add(self, a: Array, b: Array) -> Array:
        return a + b

    def sub(self, a: Array, b: Array) -> Array:
        return a - b

    def scale(self, factor: float, a: Array) -> Array:
        return factor * a

    def fma(self, factor: float, a: Array, b: Array) -> Array:
        return factor * a + b


def _fourier_input(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    axis, length, window = (op.attributes[n].value for n in ("axis", "length", "window"))
    tiles, step = result_shape(op, symbols)[axis + 1], length - window + 1
    low = list(op.attributes["padding"])[0]
    high = max((tiles - 1) * step + length - low - x.shape[axis], 0)
    padded = np.pad(x, [(low, high) if i == axis else (0, 0) for i in range(4)])
    views = np.lib.stride_tricks.sliding_window_view(padded, length, axis=axis)
    views = np.moveaxis(np.moveaxis(views, axis, 0)[::step][:tiles], 0, axis)
    values: list[Array] = list(np.moveaxis(views, -1, 0))
    points: list[Array] = spectrum(values, Arrays())
    return np.stack(points)


def _fourier_output(op: Any, operands: list[Array], symbols: Symbols) -> Array:
    (x,) = operands
    axis, window, size = (op.attributes[n].value for n in ("axis", "window", "size"))
    points: list[Array] = list(x)
    sums = np.stack(signal(points, Arrays())[window - 1 :], axis=axis + 1)
    merged = list(x.shape[1:])
    merged[axis] = sums.shape[axis] * sums.shape[axis + 1]
    return np.take(sums.reshape(merged), range(size), axis=axis)


FUNCTIONS = {
    "fourier_input": _fourier_input,
    "fourier_output": _fourier_output,
    "pool": _pool,
    "resample": _resample,
    "winograd_input": _winograd_input,
    "winograd_output": _winograd_output,
}

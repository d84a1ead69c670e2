"""A convolution as products of spectra: tiles of H and of W, each transformed along its axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from metadef import ir
from metadef.cost.convolution import Convolution, fourier_cycles
from metadef.device.spec import DeviceSpec
from metadef.dialects.metadef.attributes import integers
from metadef.dialects.metadef.fourier import LENGTHS, points_of
from metadef.dialects.metadef.ops.constant import constant
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.fourier_input import fourier_input
from metadef.dialects.metadef.ops.fourier_output import fourier_output
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.slice import slice
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.shapes import shape_of
from metadef.symbolic import Dim, product

from ._convolution_figures import is_depthwise
from ._growth import MAX_GROWTH, MEBIBYTE, may_grow
from ._reshapes import reshaped

_F64_BYTES = 8


def length_problem(length: int, conv: Convolution) -> str | None:
    """Return what tiles of a length need to be used for a convolution, or None."""
    if length not in LENGTHS:
        return f"tiles of {', '.join(map(str, LENGTHS))}, got {length}"
    if length <= max(conv.window):
        return f"tiles longer than its windows of {max(conv.window)}, got {length}"
    rows, columns = conv.window
    size = rows * columns * conv.weights * _F64_BYTES
    for window in conv.window:
        read, size = size, size * points_of(length) // window if window > 1 else size
        if not may_grow(read, size):
            return f"weights whose spectra can be kept, got {size // MEBIBYTE} MiB in f64"
    most = MAX_GROWTH * MEBIBYTE
    if size // 2 > most:
        return (
            f"weights whose spectra are at most {MAX_GROWTH} MiB, got {size // 2 // MEBIBYTE} MiB"
        )
    return None


def spectra_cycles(conv: Convolution, spec: DeviceSpec) -> dict[int, float]:
    """Return what tiles of each length that can be used cost."""
    legal = (n for n in LENGTHS if length_problem(n, conv) is None)
    return {n: fourier_cycles(conv, n, spec) for n in legal}


def by_spectra(op: Any, length: int) -> ir.Value:
    """Build the transforms of weight and image, their products, the way back, and the bias.

    An axis along which the window is one element stays as it is.
    """
    x, w, *bias = op.operation.operands
    windows = {axis: shape_of(w).dims[axis].value for axis in (1, 2)}
    axes = [axis for axis, window in windows.items() if window > 1]
    top, bottom, left, right = integers(op, "padding")
    padding = {1: (top, bottom), 2: (left, right)}
    batch = shape_of(x).dims[0]
    sizes = shape_of(op.operation.results[0]).dims
    whole = [padding[axis] if axis not in axes else (0, 0) for axis in (1, 2)]
    if any(map(any, whole)):
        low, high = zip((0, 0), *whole, (0, 0), strict=True)
        x = pad(x, low, high)
    weights = _spectra_of_weights(op, axes, length)
    for axis in axes:
        x = _in_front(fourier_input(x, axis, length, windows[axis], padding[axis]))
    x = _products(x, weights, batch, is_depthwise(op))
    for axis in reversed(axes):
        points, *dims = shape_of(x).dims
        apart = reshaped(x, [points_of(length), points // points_of(length), *dims])
        x = fourier_output(apart, axis, length, windows[axis], sizes[axis].value)
    return pointwise("add", x, bias[0]) if bias else x


def _products(x: ir.Value, weights: ir.Value, batch: Dim, depthwise: bool) -> ir.Value:
    """Return at each point the products of spectra [points * N, I, J, C] with weights."""
    rows, *places, channels = shape_of(x).dims
    points = shape_of(weights).dims[0]
    if depthwise:
        apart = reshaped(x, [points, batch, *places, channels])
        product_ = pointwise("mul", apart, reshaped(weights, [points, 1, 1, 1, channels]))
        return reshaped(product_, [rows, *places, channels])
    flat = reshaped(x, [points, product([batch, *places]), channels])
    products = contraction(flat, weights)
    return reshaped(products, [rows, *places, shape_of(weights).dims[2]])


def _spectra_of_weights(op: Any, axes: Sequence[int], length: int) -> ir.Value:
    """Return the spectra of w's windows, [points, C, O] or [points, C], rounded once from f64.

    Windows are read backwards, as a product of spectra is a convolution and not a correlation; and
    divided by the factor that `fourier_output` leaves.
    """
    w = op.operation.operands[1]
    element = shape_of(w).element
    groups, rows, columns, channels, outputs = shape_of(w).dims
    if is_depthwise(op):
        w = transpose(reshaped(w, [groups, rows, columns]), [1, 2, 0])
        channels = groups
    f64 = pointwise("cast", w, element=ir.F64Type.get())
    image = reshaped(f64, [1, rows, columns, channels * outputs])
    for axis in axes:
        window = shape_of(image).dims[axis].value
        image = slice(image, axis, window - 1, window, -1)
    scale = constant(np.array(length ** -len(axes)), ir.F64Type.get())
    image = pointwise("mul", image, scale)
    for axis in axes:
        # One tile, which ends in zeros.
        window = shape_of(image).dims[axis].value
        image = _in_front(fourier_input(image, axis, length, length, (0, length - window)))
    points = shape_of(image).dims[0]
    dims = [points, channels] if is_depthwise(op) else [points, channels, outputs]
    return reshaped(pointwise("cast", image, element=element), dims)


def _in_front(spectra: ir.Value) -> ir.Value:
    """Return [p, n, h, w, c] as images [p * n, h, w, c]."""
    points, count, *dims = shape_of(spectra).dims
    return reshaped(spectra, [points * count, *dims])

"""The figures of a convolution of images in either layout, and what it lacks for tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from metadef import ir
from metadef.cost.convolution import Convolution
from metadef.dialects.metadef.attributes import integer, integers, text
from metadef.dialects.metadef.fourier import LENGTHS
from metadef.dialects.metadef.shapes import ONE, shape_of
from metadef.symbolic import Dim

#: windows of fewer elements both ways are left to Winograd's tiles
LEAST_FOURIER_WINDOW = 5


def convolution_of(op: Any, value_of: Callable[[Dim], int]) -> Convolution:
    """Return what is priced; `value_of` says how many images a symbolic batch is."""
    batch, *_ = shape_of(op.operation.operands[0]).dims
    height, width, outputs = _result(op)
    rows, columns = _window(op)
    return Convolution(
        value_of(batch),
        *(height.value, width.value, _channels(op).value, outputs.value),
        window=(rows.value, columns.value),
        groups=integer(op, "groups"),
    )


def window_of(op: Any) -> tuple[int, int] | None:
    """Return the sizes of the window, None where they are not known."""
    rows, columns = _window(op)
    return (rows.value, columns.value) if rows.is_static and columns.is_static else None


def is_depthwise(op: Any) -> bool:
    """Tell whether each channel is a group, of one output."""
    groups = Dim.of(integer(op, "groups"))
    return groups != ONE and _channels(op) == groups and _result(op)[2] == groups


def image_problem(op: Any) -> str | None:
    """Return what a convolution is not, of images in f32, or None."""
    x = shape_of(op.operation.operands[0])
    fits = x.rank == 4 and isinstance(x.element, ir.F32Type)
    return None if fits else "f32 images"


def tiles_problem(op: Any) -> str | None:
    """Return what windows lack to be computed for tiles of outputs at once, or None."""
    if any(s != 1 for s in (*integers(op, "strides"), *integers(op, "dilations"))):
        return "strides and dilations of 1"
    if min(integers(op, "padding")) < 0:
        return "padding of 0 or more"
    images = [shape_of(v) for v in (op.operation.operands[0], op.operation.results[0])]
    known = all(d.is_static and d.value > 0 for shape in images for d in shape.dims[1:])
    return None if known else "sizes and channels that are static and not 0"


def fourier_problem(op: Any, once: set[ir.Value]) -> str | None:
    """Return what a convolution of images lacks to be computed by spectra, or None; `once` are the
    values that are known before any call."""
    window = window_of(op)
    fits = window is not None and LEAST_FOURIER_WINDOW <= max(window) < LENGTHS[-1]
    if not fits or op.operation.operands[1] not in once:
        return f"windows of {LEAST_FOURIER_WINDOW} to {LENGTHS[-1] - 1} that are known once"
    if integer(op, "groups") != 1 and not is_depthwise(op):
        return "one group, or one of each channel"
    return tiles_problem(op)


def _is_nhwc(op: Any) -> bool:
    return text(op, "layout") == "nhwc"


def _channels(op: Any) -> Dim:
    return shape_of(op.operation.operands[0]).dims[-1 if _is_nhwc(op) else 1]


def _window(op: Any) -> tuple[Dim, Dim]:
    dims = shape_of(op.operation.operands[1]).dims
    return (dims[1], dims[2]) if _is_nhwc(op) else (dims[2], dims[3])


def _result(op: Any) -> tuple[Dim, Dim, Dim]:
    """Return height, width and channels."""
    _, *dims = shape_of(op.operation.results[0]).dims
    return (dims[0], dims[1], dims[2]) if _is_nhwc(op) else (dims[1], dims[2], dims[0])

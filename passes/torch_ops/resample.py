"""Up- and downsampling of images, and sampling at given points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialects.metadef.ops.resample import resample
from metadef.symbolic import Dim

from .build import dims
from .call import Call
from .registry import NotModelled, converts

Sizes = Sequence[Any]


def _resample(
    x: ir.Value, mode: str, sizes: Sizes, factors: Sequence[float | None], align: bool
) -> ir.Value:
    """Resample; a factor torch was given is the scale, else the ratio of sizes."""
    scales = []
    for size, source, factor in zip(sizes, dims(x)[2:], factors, strict=True):
        if factor is None:
            target = Dim.of(size)
            if not (target.is_static and source.is_static):
                whole = target // source
                if not whole.is_static:
                    raise NotModelled
                factor = float(whole.value)
            else:
                factor = target.value / source.value
        if factor <= 0:
            raise NotModelled
        scales.append(float(factor))
    return resample(x, list(sizes), mode=mode, scales=scales, align_corners=align)


@converts("aten.upsample_nearest1d", "aten.upsample_nearest2d", "aten.upsample_nearest3d")
def nearest(call: Call, x: ir.Value, sizes: Sizes, *factors: float | None) -> ir.Value:
    return _resample(x, "nearest", sizes, factors, False)


@converts("aten.upsample_linear1d", "aten.upsample_bilinear2d", "aten.upsample_trilinear3d")
@converts("aten.upsample_bicubic2d")
def interpolated(
    call: Call, x: ir.Value, sizes: Sizes, align: bool, *factors: float | None
) -> ir.Value:
    return _resample(x, _mode(call), sizes, factors, align)


def _mode(call: Call) -> str:
    return "cubic" if "bicubic" in call.name else "linear"


@converts(*(f"aten.upsample_nearest{n}d.vec" for n in (1, 2, 3)))
def nearest_vec(
    call: Call, x: ir.Value, sizes: Sizes | None, factors: Sequence[float] | None
) -> ir.Value:
    return _resample(x, "nearest", *_sizes_and_factors(x, sizes, factors), False)


@converts("aten.upsample_linear1d.vec", "aten.upsample_bilinear2d.vec")
@converts("aten.upsample_trilinear3d.vec", "aten.upsample_bicubic2d.vec")
def interpolated_vec(
    call: Call, x: ir.Value, sizes: Sizes | None, align: bool, factors: Sequence[float] | None
) -> ir.Value:
    return _resample(x, _mode(call), *_sizes_and_factors(x, sizes, factors), align)


def _sizes_and_factors(
    x: ir.Value, sizes: Sizes | None, factors: Sequence[float] | None
) -> tuple[Sizes, Sequence[float | None]]:
    """Return sizes, floor(in * factor) where only factors are given."""
    spatial = dims(x)[2:]
    if sizes is not None:
        return sizes, [None] * len(spatial)
    if factors is None:
        raise NotModelled
    computed: list[Any] = []
    for d, f in zip(spatial, factors, strict=True):
        if not d.is_static and f != int(f):
            raise NotModelled
        computed.append(int(d.value * f) if d.is_static else d * int(f))
    return computed, list(factors)

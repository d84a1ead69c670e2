"""Sliding windows, shared by conv and pool: where the spatial dims are and how many windows fit."""

from __future__ import annotations

from collections.abc import Sequence

from metadef.symbolic import Dim, DimLike

LAYOUTS = ("nchw", "nhwc")


def channel_axis(layout: str, rank: int) -> int:
    """Return where the channels are."""
    return 1 if layout == "nchw" else rank - 1


def spatial_axes(layout: str, rank: int) -> range:
    """Return where the spatial dims are."""
    return range(2, rank) if layout == "nchw" else range(1, rank - 1)


def given_or(values: Sequence[int] | None, default: int, count: int) -> list[int]:
    """Return the values of a builder's argument, or `count` times the default without it."""
    return [default] * count if values is None else list(values)


def windows(
    sizes: Sequence[Dim],
    kernel: Sequence[DimLike],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
) -> list[Dim]:
    """Return the number of windows along each spatial dim.

    `floor((size + low + high - dilation * (kernel - 1) - 1) / stride) + 1`.
    """
    return [
        (size + (padding[2 * i] + padding[2 * i + 1] - 1) - (Dim.of(k) - 1) * dilations[i])
        // strides[i]
        + 1
        for i, (size, k) in enumerate(zip(sizes, kernel, strict=True))
    ]

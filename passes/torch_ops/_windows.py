"""What torch's convolutions and pools share: sizes for each dim, padding, the batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.dialects.metadef.windows import windows
from metadef.symbolic import Dim, product

from . import build
from .build import dims, rank, reshape
from .registry import NotModelled


def spread(values: Any, count: int) -> list[int]:
    """Return one value for each spatial dim; one value stands for all."""
    listed = [values] if isinstance(values, int) else list(values)
    return listed * count if len(listed) == 1 else listed


def both_ends(padding: Sequence[int]) -> list[int]:
    """Return (low, high) for each dim."""
    return [p for each in padding for p in (each, each)]


def with_batch(x: ir.Value, spatial: int) -> tuple[ir.Value, bool]:
    """Return x with a batch dim, and whether it had one."""
    had = rank(x) == spatial + 2
    return (x if had else build.unsqueeze(x, 0)), had


def without_batch(x: ir.Value, had: bool) -> ir.Value:
    return x if had else reshape(x, dims(x)[1:])


def flat_positions(sizes: Sequence[Dim]) -> ir.Value:
    """Return the row-major position of each element of `sizes`."""
    return reshape(build.iota([product([*sizes])], 0), sizes)


@dataclass(frozen=True)
class Windows:
    """The windows of a pool: one value a spatial dim, but `ends`, which are (low, high) padding.

    `padding` is torch's; `ends` are more where ceil mode has further windows.
    """

    kernel: list[int]
    strides: list[int]
    padding: list[int]
    dilations: list[int]
    ends: list[int]

    def counts(self, x: ir.Value) -> list[Dim]:
        """Return how many windows of x [N, C, spatial..] there are along each dim."""
        return windows(dims(x)[2:], self.kernel, self.strides, self.ends, self.dilations)


def windows_of(
    x: ir.Value, kernel: Any, strides: Any, padding: Any, dilations: Any, ceil_mode: bool
) -> Windows:
    """Return the windows of a pool of x [N, C, spatial..] by torch's arguments."""
    extents, steps, pads, spaces = (
        spread(values, rank(x) - 2) for values in (kernel, strides or kernel, padding, dilations)
    )
    ends = _ceil_padding(x, extents, steps, pads, spaces) if ceil_mode else both_ends(pads)
    return Windows(extents, steps, pads, spaces, ends)


def _ceil_padding(
    x: ir.Value,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
) -> list[int]:
    """Return (low, high) padding that gives ceil mode's windows.

    A last window that starts in the high padding is left out: `high` grows by less than a stride.
    """
    ends = []
    for i, (k, s, p, d) in enumerate(zip(kernel, strides, padding, dilations, strict=True)):
        size = dims(x)[2 + i]
        if not size.is_static:
            raise NotModelled
        reach = size.value + 2 * p - d * (k - 1) - 1
        count = -(-reach // s) + 1
        if (count - 1) * s >= size.value + p:
            count -= 1
        ends += [p, p + max((count - 1) * s - reach, 0) if count > reach // s + 1 else p]
    return ends

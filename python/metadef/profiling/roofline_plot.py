"""The roofline plot of a profile as SVG: what each kernel reaches under what the device can do.

Across: flops for each byte that crosses memory (Williams, Waterman, Patterson, 2009). Up: GFLOP/s.
A kernel's circle has an area in proportion to its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from metadef.device.figures import Figures

from .profile import KernelProfile, Profile

_WIDTH, _HEIGHT = 860, 480
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 120, 16, 48
#: px: radius of a kernel that takes all the time, and the least one
_MOST, _LEAST = 34.0, 3.0
#: px of a line of text, and of a letter
_LINE, _LETTER = 13.0, 6.6


@dataclass(frozen=True)
class _Axis:
    """A logarithmic axis from 10^low to 10^high between two places in px."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    @property
    def decades(self) -> list[float]:
        return [10.0**e for e in range(math.ceil(self.low), math.floor(self.high) + 1)]


def roofline_plot(profile: Profile) -> str:
    """Return an `<svg>` element; its colours are the classes of the page around it."""
    shown = [k for k in profile.kernels if k.flops and k.bytes and k.ns]
    elements = {"f32", *(e for k in shown for e in k.operations if e == "f64")}
    roofs = _roofs(profile.limits, profile.threads, sorted(elements))
    across, up = _axes(shown, roofs)
    return "\n".join(
        [
            f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
            'aria-label="Roofline: GFLOP/s over flops for each byte">',
            *_grid(across, up),
            *_roof_lines(roofs, across, up),
            *_circles(shown, profile.total_ns, across, up),
            "</svg>",
        ]
    )


@dataclass(frozen=True)
class _Roofs:
    """GFLOP/s by element type, and GB/s by memory level."""

    peaks: dict[str, float]
    bandwidths: dict[str, float]


def _roofs(limits: Figures | None, threads: int, elements: Sequence[str]) -> _Roofs:
    if limits is None:
        return _Roofs({}, {})
    peaks = {element: limits.flops_of(element, threads) for element in elements}
    bandwidths = {level: limits.bandwidth_of(level, threads) for level in limits.levels(threads)}
    return _Roofs(
        {name: rate / 1e9 for name, rate in peaks.items() if rate},
        {name: rate / 1e9 for name, rate in bandwidths.items() if rate},
    )


def _axes(shown: Sequence[KernelProfile], roofs: _Roofs) -> tuple[_Axis, _Axis]:
    """Return axes that hold all kernels, and the ridges where bandwidth meets arithmetic."""
    peak = max(roofs.peaks.values(), default=1.0)
    xs = [k.flops / k.bytes for k in shown]
    xs += [peak / bandwidth for bandwidth in roofs.bandwidths.values()]
    ys = [k.flops_per_second / 1e9 for k in shown] + [peak]
    return (
        _Axis(*_decades(xs), _LEFT, _WIDTH - _RIGHT),
        _Axis(*_decades(ys), _HEIGHT - _BOTTOM, _TOP),
    )


def _decades(values: Sequence[float]) -> tuple[float, float]:
    logs = [math.log10(v) for v in values if v > 0] or [0.0]
    return math.floor(min(logs) - 0.2), max(logs) + 0.2


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for value in across.decades:
        x = across.at(value)
        yield _line("grid", x, up.start, x, up.end)
        yield _text(x, up.start + 18, f"{value:g}", "middle")
    for value in up.decades:
        y = up.at(value)
        yield _line("grid", across.start, y, across.end, y)
        yield _text(across.start - 8, y + 4, f"{value:g}", "end")
    middle = (across.start + across.end) / 2
    yield _text(middle, _HEIGHT - 8, "flops for each byte", "middle")
    yield _text(across.start + 6, up.end + 12, "GFLOP/s", "start")


def _roof_lines(roofs: _Roofs, across: _Axis, up: _Axis) -> Iterator[str]:
    top = max(roofs.peaks.values(), default=10.0**up.high)
    right = 10.0**across.high
    for element, peak in roofs.peaks.items():
        y = up.at(peak)
        yield _line("roof", across.start, y, across.end, y)
        yield _text(across.end + 6, y + 4, f"{element} {peak:.0f}", "start")
    for level, bandwidth in roofs.bandwidths.items():
        # From the edge of the plot, left or below, to the highest peak.
        first = max(10.0**across.low, 10.0**up.low / bandwidth)
        last = min(right, top / bandwidth)
        if last <= first:
            continue
        x1, y1 = across.at(first), up.at(bandwidth * first)
        x2, y2 = across.at(last), up.at(bandwidth * last)
        yield _line("roof", x1, y1, x2, y2)
        angle = math.degrees(math.atan2(y2 - y1, x2 - x1))
        x, y = x1 + 0.25 * (x2 - x1), y1 + 0.25 * (y2 - y1) - 5
        turned = f'transform="rotate({angle:.1f} {x:.1f} {y:.1f})"'
        yield _text(x, y, f"{level} {bandwidth:.0f} GB/s", "start", turned)


def _circles(
    shown: Sequence[KernelProfile], total_ns: float, across: _Axis, up: _Axis
) -> Iterator[str]:
    names: list[tuple[float, float, float]] = []
    for kernel in shown:
        x, y = across.at(kernel.flops / kernel.bytes), up.at(kernel.flops_per_second / 1e9)
        radius = max(_LEAST, _MOST * math.sqrt(kernel.ns / total_ns))
        about = (
            f"{kernel.name}: {kernel.ns / 1e6:.3f} ms, "
            f"{kernel.flops_per_second / 1e9:.1f} GFLOP/s, "
            f"{kernel.bytes_per_second / 1e9:.1f} GB/s, {kernel.of_limit:.0%} of {kernel.bound}"
        )
        yield (
            f'<circle class="{colour(kernel)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{escape(about)}</title></circle>"
        )
        left, right = x + radius + 3, x + radius + 3 + _LETTER * len(kernel.name)
        free = all(abs(y - b) > _LINE or right < start or left > end for start, end, b in names)
        if free and right < _WIDTH:
            names.append((left, right, y))
            yield _text(left, y + 4, kernel.name, "start")


def colour(kernel: KernelProfile) -> str:
    """Return the class of what bounds a kernel: arithmetic, caches, memory, or nothing known."""
    if not kernel.bound:
        return "unknown"
    if kernel.bound == "memory":
        return "memory"
    return "cache" if kernel.bound.startswith("l") else "arithmetic"


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(text)}</text>'

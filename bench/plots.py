"""Plots as SVG text: points and bars over names, on a scale of ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

#: in the order in which series come
COLOURS = ("#d62728", "#7f7f7f", "#1f77b4", "#17becf", "#2ca02c", "#9467bd", "#8c564b")
_LINE, _WIDTH, _NAMES, _TOP = 22, 900, 210, 64


def dots(title: str, rows: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> str:
    """Plot a point for each series in each row, on a logarithmic scale with a line at 1."""
    values = [value for found in rows.values() for value in found.values()]
    scale = _Scale(min([*values, 1.0]), max([*values, 1.0]))
    parts = [_heading(title), _legend(series), *scale.grid(len(rows))]
    for number, (name, found) in enumerate(rows.items()):
        y = _TOP + _LINE * (number + 0.5)
        parts.append(_text(_NAMES - 10, y + 4, name, anchor="end"))
        # the first of the series is drawn last, on top
        for at, what in reversed(list(enumerate(series))):
            if what in found:
                tip = f"{name}, {what}: {found[what]:.2f}"
                parts.append(
                    f'<circle cx="{scale(found[what]):.1f}" cy="{y:.1f}" r="{6 if at == 0 else 4}" '
                    f'fill="{COLOURS[at % len(COLOURS)]}"><title>{escape(tip)}</title></circle>'
                )
    return _svg(parts, _TOP + _LINE * len(rows) + 30)


def bars(title: str, rows: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> str:
    """Plot a bar for each series in each row, from a line at 1, on a logarithmic scale."""
    values = [value for found in rows.values() for value in found.values()]
    scale = _Scale(min([*values, 1.0]), max([*values, 1.0]))
    parts = [_heading(title), _legend(series), *scale.grid(len(rows))]
    height = (_LINE - 6) / len(series)
    for number, (name, found) in enumerate(rows.items()):
        top = _TOP + _LINE * number + 3
        parts.append(_text(_NAMES - 10, top + 12, name, anchor="end"))
        for at, what in enumerate(series):
            if what in found:
                left, right = sorted((scale(1.0), scale(found[what])))
                tip = f"{name}, {what}: {found[what]:.2f}"
                parts.append(
                    f'<rect x="{left:.1f}" y="{top + at * height:.1f}" width="{right - left:.1f}" '
                    f'height="{height:.1f}" fill="{COLOURS[at % len(COLOURS)]}">'
                    f"<title>{escape(tip)}</title></rect>"
                )
    return _svg(parts, _TOP + _LINE * len(rows) + 30)


class _Scale:
    """From a value to x, by its logarithm."""

    def __init__(self, least: float, most: float) -> None:
        self._low, self._high = math.log(least) - 0.08, math.log(most) + 0.08
        self._least, self._most = least, most

    def __call__(self, value: float) -> float:
        part = (math.log(value) - self._low) / (self._high - self._low)
        return _NAMES + part * (_WIDTH - _NAMES - 20)

    def grid(self, rows: int) -> list[str]:
        """Return lines at round values, the one at 1 the strongest."""
        ticks = [a * 10.0**b for b in range(-2, 3) for a in (1, 1.5, 2, 3, 5, 7)]
        bottom = _TOP + _LINE * rows
        parts = []
        for tick in ticks:
            if self._low <= math.log(tick) <= self._high:
                colour = "#000000" if tick == 1 else "#d8d8d8"
                x = self(tick)
                parts.append(
                    f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{colour}"/>'
                )
                parts.append(_text(x, bottom + 16, f"{tick:g}", anchor="middle"))
        return parts


def _heading(title: str) -> str:
    return _text(10, 20, title, size=15)


def _legend(series: Sequence[str]) -> str:
    parts, x = [], float(_NAMES)
    for at, name in enumerate(series):
        colour = COLOURS[at % len(COLOURS)]
        parts.append(f'<circle cx="{x:.0f}" cy="42" r="5" fill="{colour}"/>')
        parts.append(_text(x + 10, 46, name))
        x += 30 + 7 * len(name)
    return "\n".join(parts)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )


def _svg(parts: Sequence[str], height: float) -> str:
    size = f'width="{_WIDTH}" height="{height:.0f}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif">',
            f'<rect {size} fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )

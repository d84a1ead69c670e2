"""Figures of speed: what a data sheet says of a device, or what it was measured to reach.

Both are `Figures`, and a `DeviceSpec` has one of each, side by side. In JSON a figure is a number,
or a list of measurements, each with the number of threads, the spread and the rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: quantity -> its unit, and what it is of
QUANTITIES: Mapping[str, tuple[str, str]] = {
    "clock_hz": ("Hz", "clock: the highest by the data sheet; under load where it was measured"),
    "flops": ("op/s", "multiply-adds of an element type, each two operations"),
    "bandwidth": ("byte/s", "a memory level, by its best way of access"),
    "read": ("byte/s", "loads from a memory level"),
    "copy": ("byte/s", "loads and stores within a memory level, both counted"),
    "stream": ("byte/s", "a copy whose stores bypass the caches"),
    "latency_ns": ("ns", "a load from a memory level that needs the one before it"),
    "fork_join_ns": ("ns", "an OpenMP region that does nothing"),
    "barrier_ns": ("ns", "all threads waiting for each other"),
    "timer_ns": ("ns", "reading the clock"),
}
#: what says how many bytes a second a memory level gives
BANDWIDTHS = ("bandwidth", "read", "copy", "stream")
#: those of an element type or a memory level; the others are of the device as such
_OF_SOMETHING = ("flops", *BANDWIDTHS, "latency_ns")
_WHOLE = math.inf


@dataclass(frozen=True)
class Figure:
    """One figure, in the unit of its quantity. `of` is an element type or a memory level, or ''.

    `threads` worked together, None: the whole device. A measured `value` is that of the best round,
    as other work only ever adds to a time; `spread` is (P90 - P10) / median over the rounds.
    """

    quantity: str
    of: str
    value: float
    threads: int | None = None
    spread: float | None = None
    rounds: int | None = None


@dataclass(frozen=True)
class Figures:
    """Figures of one device, all theoretical or all measured; what is not there is not known.

    `date` is when they were measured: UTC, ISO 8601. Properties are of the whole device.
    """

    entries: tuple[Figure, ...] = ()
    date: str = ""

    def __post_init__(self) -> None:
        """Put the entries in order, so that equal figures are equal: nearer levels come first."""
        order = {quantity: place for place, quantity in enumerate(QUANTITIES)}
        entries = sorted(self.entries, key=lambda f: (order[f.quantity], f.of, f.threads or _WHOLE))
        object.__setattr__(self, "entries", tuple(entries))

    def find(self, quantity: str, of: str = "", threads: int | None = None) -> Figure | None:
        """Return a figure for so many threads; for None that of all, or else of the most."""
        found = [f for f in self.entries if (f.quantity, f.of) == (quantity, of)]
        if threads is not None:
            return next((f for f in found if f.threads == threads), None)
        return max(found, key=lambda f: _WHOLE if f.threads is None else f.threads, default=None)

    def value(self, quantity: str, of: str = "", threads: int | None = None) -> float | None:
        """Return the value of what `find` finds."""
        found = self.find(quantity, of, threads)
        return None if found is None else found.value

    def bandwidth_of(self, level: str, threads: int | None = None) -> float | None:
        """Return the bytes/s that the best access pattern reaches in a memory level."""
        found = [self.value(pattern, level, threads) for pattern in BANDWIDTHS]
        return max((value for value in found if value is not None), default=None)

    def flops_of(self, element: str, threads: int | None = None) -> float | None:
        """Return the operations/s of code that computes with an element type: halves as f32."""
        return self.value("flops", "f64" if element == "f64" else "f32", threads)

    def levels(self, threads: int | None = None) -> tuple[str, ...]:
        """Return the memory levels whose bandwidth is known, nearest first."""
        known = (f for f in self.entries if f.quantity in BANDWIDTHS)
        return tuple(sorted({f.of for f in known if threads in (None, f.threads)}))

    @property
    def clock_hz(self) -> float | None:
        return self.value("clock_hz")

    @property
    def flops(self) -> Mapping[str, float]:
        """Operations/s by element type."""
        elements = dict.fromkeys(f.of for f in self.entries if f.quantity == "flops")
        rates = {element: self.value("flops", element) for element in elements}
        return {element: rate for element, rate in rates.items() if rate is not None}

    @property
    def bandwidth(self) -> Mapping[str, float]:
        """Bytes/s by level: `l1`, `l2`, ..., `memory`."""
        rates = {level: self.bandwidth_of(level) for level in self.levels()}
        return {level: rate for level, rate in rates.items() if rate is not None}

    @property
    def fork_join_ns(self) -> float | None:
        return self.value("fork_join_ns")

    @property
    def barrier_ns(self) -> float | None:
        return self.value("barrier_ns")

    def merged(self, other: Figures) -> Figures:
        """Return what either has; where both have a figure, the other one's."""
        mine = {(f.quantity, f.of, f.threads): f for f in self.entries}
        theirs = {(f.quantity, f.of, f.threads): f for f in other.entries}
        return Figures(tuple({**mine, **theirs}.values()), max(self.date, other.date))


def figures(date: str = "", **quantities: float | Mapping[str, float] | None) -> Figures:
    """Return figures of a whole device: `figures(clock_hz=3e9, flops={"f32": 1e12})`."""
    return from_data({"date": date, **quantities})


def to_data(figures: Figures) -> dict[str, Any]:
    """Return figures as plain data for JSON: by quantity, and by what they are of."""
    data: dict[str, Any] = {"date": figures.date} if figures.date else {}
    for figure in figures.entries:
        if figure.quantity not in _OF_SOMETHING:
            data.setdefault(figure.quantity, []).append(figure)
        else:
            data.setdefault(figure.quantity, {}).setdefault(figure.of, []).append(figure)
    return {key: _leaf_data(value) for key, value in data.items()}


def _leaf_data(value: Any) -> Any:
    if isinstance(value, dict):
        return {of: _leaf_data(found) for of, found in value.items()}
    if not isinstance(value, list):
        return value
    if len(value) == 1 and value[0] == Figure(value[0].quantity, value[0].of, value[0].value):
        return value[0].value
    names = ("value", "threads", "spread", "rounds")
    return [{k: v for k in names if (v := getattr(f, k)) is not None} for f in value]


def from_data(data: Mapping[str, Any]) -> Figures:
    """Return the figures of plain data that keeps to the schema; null is not known."""
    entries = [
        figure
        for quantity, found in data.items()
        if quantity != "date"
        for of, leaf in (found if isinstance(found, Mapping) else {"": found}).items()
        for figure in _leaf(quantity, of, leaf)
    ]
    return Figures(tuple(entries), data.get("date", ""))


def _leaf(quantity: str, of: str, leaf: Any) -> Iterator[Figure]:
    if isinstance(leaf, list):
        for entry in leaf:
            fields = {**entry, "value": float(entry["value"])}
            yield Figure(quantity, of, **fields)
    elif leaf is not None:
        yield Figure(quantity, of, float(leaf))

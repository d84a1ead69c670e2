"""What a device was measured to reach: rates, bandwidths, latencies, what threads cost each other.

`metadef.measure` fills it by running micro-benchmarks; `figures` is what fits into a `DeviceSpec`.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metadef.device.spec import DeviceSpec, Figures, to_data
from metadef.diagnostics import DeviceError

#: quantity -> its unit, and what it is measured of
QUANTITIES: Mapping[str, tuple[str, str]] = {
    "fma": ("flop/s", "multiply-adds in registers, by element type; each is two operations"),
    "read": ("byte/s", "loads from a memory level"),
    "copy": ("byte/s", "loads and stores within a memory level, both counted"),
    "stream": ("byte/s", "a copy whose stores bypass the caches"),
    "latency": ("ns", "a load that needs the one before it"),
    "fork_join": ("ns", "an OpenMP region that does nothing"),
    "barrier": ("ns", "all threads waiting for each other"),
    "timer": ("ns", "reading the clock"),
}


@dataclass(frozen=True)
class Measurement:
    """One figure: `value` is that of the best round, as other work only ever adds to a time.

    `spread` is (P90 - P10) / median over the rounds. `of` is an element type, or a memory level:
    `l1`, ..., `memory`.
    """

    quantity: str
    of: str
    threads: int
    value: float
    spread: float
    rounds: int

    @property
    def unit(self) -> str:
        return QUANTITIES[self.quantity][0]


@dataclass(frozen=True)
class Limits:
    """All that was measured of a device; `date` is UTC, ISO 8601."""

    device: str
    fingerprint: str
    date: str
    measurements: tuple[Measurement, ...]

    def find(self, quantity: str, of: str = "", threads: int = 1) -> Measurement | None:
        """Return what was measured, or None."""
        wanted = (quantity, of, threads)
        return next((m for m in self.measurements if (m.quantity, m.of, m.threads) == wanted), None)

    def flops(self, element: str, threads: int) -> float | None:
        """Return operations/s on an element type; halves are computed as f32."""
        found = self.find("fma", "f64" if element == "f64" else "f32", threads)
        return None if found is None else found.value

    def bandwidth(self, level: str, threads: int) -> float | None:
        """Return the bytes/s that the best access pattern reaches in a memory level."""
        found = [self.find(pattern, level, threads) for pattern in ("read", "copy", "stream")]
        return max((m.value for m in found if m is not None), default=None)

    def levels(self, threads: int) -> tuple[str, ...]:
        """Return the memory levels that were measured, nearest first."""
        names = [m.of for m in self.measurements if m.quantity == "read" and m.threads == threads]
        return tuple(dict.fromkeys(names))

    def merged(self, other: Limits) -> Limits:
        """Return what either has; `other` is of the same device, and wins."""
        mine = {(m.quantity, m.of, m.threads): m for m in self.measurements}
        theirs = {(m.quantity, m.of, m.threads): m for m in other.measurements}
        return dataclasses.replace(
            self,
            date=max(self.date, other.date),
            measurements=tuple({**mine, **theirs}.values()),
        )

    def figures(self, threads: int) -> Figures:
        """Return the figures of the whole device for a descriptor's `measured`."""
        rates = {
            m.of: m.value for m in self.measurements if (m.quantity, m.threads) == ("fma", threads)
        }
        bandwidths = {level: self.bandwidth(level, threads) for level in self.levels(threads)}
        fork_join = self.find("fork_join", threads=threads)
        barrier = self.find("barrier", threads=threads)
        return Figures(
            flops=rates,
            bandwidth={level: b for level, b in bandwidths.items() if b is not None},
            fork_join_ns=None if fork_join is None else fork_join.value,
            barrier_ns=None if barrier is None else barrier.value,
        )


def fingerprint(spec: DeviceSpec) -> str:
    """Return a hash of what a device is, by all that is known of it but measurements."""
    data = {k: v for k, v in to_data(spec).items() if k != "measured"}
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def to_json(limits: Limits) -> str:
    """Return limits as JSON text; each figure has its unit beside it."""
    data = dataclasses.asdict(limits)
    for entry, measurement in zip(data["measurements"], limits.measurements, strict=True):
        entry["unit"] = measurement.unit
    return json.dumps(data, indent=2) + "\n"


def from_json(text: str, source: str = "device limits") -> Limits:
    """Return the limits that `to_json` wrote; `source` names them in errors.

    Raises:
        DeviceError: not JSON, or not of this form.
    """
    try:
        data: dict[str, Any] = json.loads(text)
        entries = [{k: v for k, v in e.items() if k != "unit"} for e in data["measurements"]]
        data["measurements"] = tuple(Measurement(**entry) for entry in entries)
        limits = Limits(**data)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DeviceError(f"{source}: expected measurements of a device, got {error!r}") from error
    for m in limits.measurements:
        if m.quantity not in QUANTITIES or not m.value > 0:
            raise DeviceError(
                f"{source}: expected a quantity of {', '.join(QUANTITIES)} and a value over 0, "
                f"got {m}"
            )
    return limits

"""`Measurement`: what one kernel took under one choice on one device, and what it was."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: kinds of kernels, by the op that has most of the work
KINDS = (
    *("contraction", "matrix_vector", "convolution_1x1", "convolution_3x3", "convolution"),
    *("depthwise", "strided", "winograd", "pointwise", "reduce", "softmax", "norm", "attention"),
    *("pool", "transpose", "gather", "other"),
)


@dataclass(frozen=True)
class Measurement:
    """One kernel, measured alone.

    `structure` is its key in plans, `family` that of all kernels which differ in their sizes alone,
    and `sizes` are these. `choice` is what was compiled, in full; `moves` the part of it that is
    not what the rules choose. With one of `copies` of its tensors it found them where it had left
    them, with more in memory. `features` describe it (`KernelFeatures`, and operations by type).

    Times are in ns: median, P90 and least of `rounds`; `spread` is (P90 - P10) / median; `flagged`
    if it stayed too large. `failed` says why there are no times.
    """

    structure: str
    family: str
    kind: str
    layout: str
    precision: str
    fused: bool
    threads: int
    copies: int
    device: str
    compiler: str
    sizes: tuple[int, ...] = ()
    symbols: Mapping[str, int] = field(default_factory=dict)
    choice: Mapping[str, Any] = field(default_factory=dict)
    moves: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, float] = field(default_factory=dict)
    ns: float = 0.0
    p90_ns: float = 0.0
    least_ns: float = 0.0
    spread: float = 0.0
    rounds: int = 0
    flagged: bool = False
    failed: str | None = None
    date: str = ""
    host: str = ""
    text: str = ""

    @property
    def best_ns(self) -> float:
        """The time that other work on the machine disturbs least: that of the least round.

        Interference only ever adds to a time, and on a shared machine often for seconds on end.
        """
        return self.least_ns

    @property
    def usable(self) -> bool:
        """Tell whether a model may learn from it: noisy and failed measurements are only kept."""
        return self.failed is None and not self.flagged and self.least_ns > 0

    @property
    def place(self) -> tuple[str, str, str, int, int]:
        """What was measured, on whatever device: structure, symbols, choice, threads, copies."""
        return (
            self.structure,
            canonical(self.symbols),
            canonical(self.choice),
            self.threads,
            min(self.copies, 2),
        )


#: columns that hold JSON
DATA = ("sizes", "symbols", "choice", "moves", "features")
COLUMNS = tuple(f.name for f in dataclasses.fields(Measurement))


def canonical(value: Any) -> str:
    """Return JSON that is equal where the values are."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=list)


def to_row(measurement: Measurement) -> tuple[Any, ...]:
    """Return the columns' values as SQLite keeps them."""
    values = ((name, getattr(measurement, name)) for name in COLUMNS)
    return tuple(
        canonical(v) if name in DATA else int(v) if isinstance(v, bool) else v for name, v in values
    )


def from_row(row: tuple[Any, ...]) -> Measurement:
    """Return the measurement whose columns `row` has.

    Raises:
        ValueError: a column holds something else.
    """
    values = dict(zip(COLUMNS, row, strict=True))
    for name in DATA:
        values[name] = json.loads(values[name])
    values["sizes"] = tuple(values["sizes"])
    values["fused"], values["flagged"] = bool(values["fused"]), bool(values["flagged"])
    return Measurement(**values)

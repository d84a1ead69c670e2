"""DEVICE of the command line, and devices as tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table

if TYPE_CHECKING:
    from metadef.device.figures import Figures
    from metadef.device.spec import DeviceSpec

DEVICE_HELP = "a descriptor's file, a shipped device (metadef device list), or host"
#: what a unit is shown in, and how much that is
_SHOWN_IN = {"op/s": ("Gop/s", 1e9), "byte/s": ("GB/s", 1e9), "Hz": ("GHz", 1e9), "ns": ("ns", 1)}
_UNKNOWN = "-"
#: a figure whose rounds spread more than this was measured in noise
NOISY = 0.1


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add `--device` of the commands that compile."""
    parser.add_argument("--device", metavar="DEVICE", help=f"{DEVICE_HELP} (default: host)")


def traits(spec: DeviceSpec) -> dict[str, str]:
    """Return the traits of a device as text by field, of its features those that it has."""
    from metadef.device.spec import to_data

    data = to_data(spec)
    for kind in ("theoretical", "measured"):
        data.pop(kind, None)
    data["features"] = [f for f in spec.features.split(",") if f.startswith("+")]
    data["instructions"] = [
        f"{i.kind} {i.lhs}*{i.rhs}->{i.accumulator}" + f" by {i.depth}" * (i.depth > 1)
        for i in spec.instructions
    ]
    data |= {f"l{cache.pop('level')}": cache for cache in data.pop("caches")}
    if spec.gpu is not None:
        data["gpu"]["matrix"] = [
            f"m{m.m}n{m.n}k{m.k} {m.lhs}*{m.rhs}->{m.accumulator}" for m in spec.gpu.matrix
        ]
    return dict(_flat(data))


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield before + name, ", ".join(value) if isinstance(value, list) else str(value)


def traits_table(spec: DeviceSpec) -> Table:
    """Return a device's traits."""
    table = Table("trait", title=spec.name)
    table.add_column("value", overflow="fold")
    for field, value in traits(spec).items():
        table.add_row(field, value)
    return table


def figures_table(spec: DeviceSpec) -> Table:
    """Return what the data sheet says beside what was measured, by one thread and by all."""
    threads = sorted({f.threads for f in spec.measured.entries if f.threads is not None})
    table = Table(title=f"figures, measured {spec.measured.date or 'never'}")
    table.add_column("figure")
    for title in ("unit", "theoretical", *(f"{n} thread(s)" for n in threads)):
        table.add_column(title, justify="right")
    for quantity, of in _quantities(spec.theoretical, spec.measured):
        unit, _ = _shown_in(quantity)
        sides = [_text(spec.theoretical, quantity, of)]
        sides += [_text(spec.measured, quantity, of, n, spread=True) for n in threads]
        table.add_row(f"{quantity} {of}".strip(), unit, *sides)
    table.caption = (
        "theoretical: the whole device, by data sheets, or cores * clock * units * lanes * 2; "
        "measured: the best round, (P90 - P10) / median over the rounds; ! is over "
        f"{NOISY:.0%}, measured in noise"
    )
    return table


def difference_tables(a: DeviceSpec, b: DeviceSpec, names: tuple[str, str]) -> list[Table]:
    """Return the traits and the figures that differ; no tables where nothing does."""
    fields = Table("trait")
    for name in names:
        fields.add_column(name, overflow="fold")
    mine, others = traits(a), traits(b)
    for field in dict.fromkeys((*mine, *others)):
        pair = mine.get(field, _UNKNOWN), others.get(field, _UNKNOWN)
        if pair[0] != pair[1]:
            fields.add_row(field, *(_apart(*pair) if field in ("features", "types") else pair))
    figures = Table("figure", "unit")
    for name in names:
        figures.add_column(f"{name}: theoretical", justify="right")
        figures.add_column("measured", justify="right")
    sides = [side for spec in (a, b) for side in (spec.theoretical, spec.measured)]
    for quantity, of in _quantities(*sides):
        texts = [_text(side, quantity, of) for side in sides]
        if texts[:2] != texts[2:]:
            unit, _ = _shown_in(quantity)
            figures.add_row(f"{quantity} {of}".strip(), unit, *texts)
    return [table for table in (fields, figures) if table.row_count]


def _apart(mine: str, others: str) -> tuple[str, str]:
    """Return what each of two lists has alone."""
    a, b = (text.replace(" ", "").split(",") for text in (mine, others))
    return ", ".join(x for x in a if x not in b), ", ".join(x for x in b if x not in a)


def _quantities(*sides: Figures) -> list[tuple[str, str]]:
    """Return what any side has a figure of, in order; patterns of access also as a bandwidth."""
    from metadef.device.figures import QUANTITIES

    found = {(f.quantity, f.of): None for side in sides for f in side.entries}
    found |= {("bandwidth", level): None for side in sides for level in side.bandwidth}
    order = list(QUANTITIES)
    return sorted(found, key=lambda pair: order.index(pair[0]))


def _shown_in(quantity: str) -> tuple[str, float]:
    from metadef.device.figures import QUANTITIES

    return _SHOWN_IN[QUANTITIES[quantity][0]]


def _text(
    figures: Figures, quantity: str, of: str, threads: int | None = None, *, spread: bool = False
) -> str:
    """Return a figure in the unit that it is shown in; `spread` adds that of its rounds."""
    _, scale = _shown_in(quantity)
    found = figures.find(quantity, of, threads)
    value = None if found is None else found.value
    if quantity == "bandwidth":
        value = figures.bandwidth_of(of, threads)
    if value is None:
        return _UNKNOWN
    text = f"{value / scale:,.2f}"
    if spread and found is not None and found.spread is not None:
        text += f" +-{found.spread:.0%}" + "!" * (found.spread > NOISY)
    return text

"""Measurements as CSV and Parquet: a column for each field, features and choices as JSON."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from metadef.diagnostics import MetadefError

from .measurement import COLUMNS, DATA, Measurement, canonical


def to_csv(measurements: Iterable[Measurement], path: Path) -> None:
    """Write a CSV file with a line of names."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows(_values(m) for m in measurements)


def to_parquet(measurements: Iterable[Measurement], path: Path) -> None:
    """Write a Parquet file.

    Raises:
        MetadefError: pyarrow is not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MetadefError(
            "Parquet needs pyarrow, which is not installed; pip install metadef[tune]"
        ) from error
    rows = [dict(zip(COLUMNS, _values(m), strict=True)) for m in measurements]
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    pyarrow.parquet.write_table(pyarrow.table(columns), path)


def _values(measurement: Measurement) -> list[Any]:
    values = ((name, getattr(measurement, name)) for name in COLUMNS)
    return [canonical(v) if name in DATA else v for name, v in values]

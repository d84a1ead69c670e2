"""Where the performance table of a user is."""

from __future__ import annotations

from pathlib import Path

from metadef.runtime.cache import default_cache

_FILE = "measurements.sqlite"


def default_table() -> Path:
    """Return the table's place, in the folder of the compile cache."""
    return default_cache().directory / _FILE

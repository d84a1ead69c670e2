"""JSON files from outside: read as data alone, and refused in words that name the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from metadef.diagnostics import MetadefError

#: larger than any that is ours; a file that is something else is not read to its end
_MOST_BYTES = 64 << 20


def parse(text: str, source: str, error: type[MetadefError]) -> Any:
    """Return the data in a text; `source` names it in errors.

    Raises:
        MetadefError: an `error`; it is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise error(f"{source}: expected JSON, got {problem}") from problem


def read(path: Path, what: str, error: type[MetadefError]) -> str:
    """Return the text of a file that should be `what`.

    Raises:
        MetadefError: an `error`; the file cannot be read, or is far too large.
    """
    try:
        size = path.stat().st_size
        if size > _MOST_BYTES:
            raise error(f"{what} '{path}': expected at most {_MOST_BYTES} bytes, got {size}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"{what} '{path}': cannot be read: {problem}") from problem


def write(text: str, path: Path, what: str, error: type[MetadefError]) -> None:
    """Write the text of a file that is `what`.

    Raises:
        MetadefError: an `error`; the file cannot be written.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise error(f"{what} '{path}': cannot be written: {problem}") from problem

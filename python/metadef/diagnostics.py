"""Errors that a user can meet: each names the thing, what was expected, what came, what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable


class MetadefError(Exception):
    """Base of every error caused by a user's input; a broken invariant of ours is an assert."""


class MetadefWarning(UserWarning):
    """Something works, but not the way one would hope."""


class ShapeInferenceError(MetadefError):
    """An op has no shape rule, or its operands' shapes contradict the rule."""


class UnsupportedOpError(MetadefError):
    """No path compiles the op, and `fallback="error"` forbids running it in eager mode."""


class InputError(MetadefError):
    """An argument of a compiled model differs from what the model was compiled for."""


class PipelineError(MetadefError):
    """A pass failed; says which, and how to reproduce it."""


class PlanError(MetadefError):
    """An execution plan is malformed, or says what cannot be."""


class DeviceError(MetadefError):
    """A device descriptor is malformed, or a module does not say its device."""


class CacheError(MetadefError):
    """The compile cache cannot be read or written."""


class TableError(MetadefError):
    """A performance table is damaged, of another version, or cannot be read or written."""


def near_names(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'a' or 'b'?` for the known names close to `name`, or ''."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return "; did you mean " + " or ".join(f"'{c}'" for c in close) + "?" if close else ""


def location_text(location: object) -> str:
    """Return `model.py:41:3` for an MLIR location, or MLIR's own text if it is no place."""
    text = str(location).removeprefix("loc(").removesuffix(")")
    place = re.fullmatch(r'"(.*)":(\d+):(\d+)', text)
    return f"{place[1]}:{place[2]}:{place[3]}" if place else text


def error_text(error: Exception) -> str:
    """Return what an exception says: an MLIRError as `file:line:column: error: ...` lines.

    An exception without a message gives the name of its class.
    """
    found = getattr(error, "error_diagnostics", None)
    if not found:
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    lines = []
    for diagnostic in found:
        lines.append(f"{location_text(diagnostic.location)}: error: {diagnostic.message}")
        for note in diagnostic.notes:
            if not note.message.startswith("see current operation"):  # all of it, often huge
                lines.append(f"{location_text(note.location)}: note: {note.message}")
    return "\n".join(lines)

"""Errors that a user can meet: each names the thing, what was expected, what came, and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MetadefError(Exception):
    """Base of every error caused by a user's input; a broken invariant of ours is an assert."""


class ShapeInferenceError(MetadefError):
    """An op has no shape rule, or its operands' shapes contradict the rule."""


class UnsupportedOpError(MetadefError):
    """No path compiles the op, and `fallback="error"` forbids running it in eager mode."""


class InputError(MetadefError):
    """An argument of a compiled model differs from what the model was compiled for."""


class PipelineError(MetadefError):
    """A pass failed; says which, and how to reproduce it."""


class CacheError(MetadefError):
    """The compile cache cannot be read or written."""


def near_names(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'a' or 'b'?` for the known names close to `name`, or ''."""
    close = difflib.get_close_matches(name, list(known), n=3)
    return "; did you mean " + " or ".join(f"'{c}'" for c in close) + "?" if close else ""

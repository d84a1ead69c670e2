"""Warnings of what a plan wanted and did not get."""

from __future__ import annotations

import warnings

from metadef.diagnostics import MetadefWarning
from metadef.plan.decision import Applied


def warn_of_fallbacks(applied: Applied | None) -> None:
    """Warn of each decision that went otherwise than the plan wanted."""
    for line in applied.fallbacks if applied is not None else ():
        warnings.warn(f"plan: {line}", MetadefWarning, stacklevel=4)


def warn_of_plan(applied: Applied | None) -> None:
    """Warn of those decisions, and of a plan of which other parts do not apply."""
    warn_of_fallbacks(applied)
    if applied is None or not applied.total:
        return
    if applied.differs or applied.applied + len(applied.fallbacks) < applied.total:
        warnings.warn(f"plan: {applied}", MetadefWarning, stacklevel=4)

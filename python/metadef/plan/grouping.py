"""Whether products of one operand are one, as a plan says it and as a pass does: `grouped`."""

from __future__ import annotations

from metadef.plan.plan import Choice

GROUPED = "grouped"
_TEXTS = {True: "grouped", False: "apart"}


def grouping_text(choice: Choice) -> str:
    """Return the text of a plan's choice."""
    return _TEXTS[bool(choice[GROUPED])]


def grouping_choice(text: str) -> Choice:
    """Return a plan's choice of the text."""
    return {GROUPED: text == _TEXTS[True]}

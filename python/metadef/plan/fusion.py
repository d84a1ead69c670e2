"""Whether a chain of ops joins its neighbour's kernel, as a plan says it and as text: `fused`."""

from __future__ import annotations

from metadef.plan.plan import Choice

FUSED = "fused"
#: whether a chain joins: the text that passes know
_TEXTS = {True: "fused", False: "apart"}


def fusion_text(choice: Choice) -> str:
    """Return the text of a plan's choice."""
    return _TEXTS[bool(choice[FUSED])]


def fusion_choice(text: str) -> Choice:
    """Return a plan's choice of the text."""
    return {FUSED: text == _TEXTS[True]}

"""What weights are stored as, as a plan says it and as an attribute does: `bf16`."""

from __future__ import annotations

from metadef.plan.plan import Choice

WEIGHTS = "weights"


def weights_text(choice: Choice) -> str:
    """Return the attribute's text of a plan's choice."""
    return str(choice[WEIGHTS])


def weights_choice(text: str) -> Choice:
    """Return a plan's choice of the attribute's text."""
    return {WEIGHTS: text}

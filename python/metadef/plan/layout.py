"""Where an op over windows has its channels, as a plan says it and as text: `nhwc` or `nchw`."""

from __future__ import annotations

from metadef.plan.plan import Choice

LAYOUT = "layout"


def layout_text(choice: Choice) -> str:
    """Return the text of a plan's choice."""
    return str(choice[LAYOUT])


def layout_choice(text: str) -> Choice:
    """Return a plan's choice of the text."""
    return {LAYOUT: text}

"""How a convolution is computed, as a plan says it and as an attribute does: `winograd(4)`."""

from __future__ import annotations

import re

from metadef.plan.plan import Choice

ALGORITHM, TILE = "algorithm", "tile"


def algorithm_text(choice: Choice) -> str:
    """Return the attribute's text of a plan's choice."""
    algorithm = str(choice[ALGORITHM])
    return f"{algorithm}({choice[TILE]})" if TILE in choice else algorithm


def algorithm_choice(text: str) -> Choice:
    """Return a plan's choice of the attribute's text."""
    match = re.fullmatch(r"(\w+)\((\d+)\)", text)
    if match is None:
        return {ALGORITHM: text}
    return {ALGORITHM: match[1], TILE: int(match[2])}

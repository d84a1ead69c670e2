"""What front passes decide, as a plan says it (`{"algorithm": "winograd", "tile": 4}`) and as the
text that the passes know (`winograd(4)`)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from metadef.plan.plan import CONVOLUTION, FUSION, GROUPING, LAYOUT, PRECISION, Choice


@dataclass(frozen=True)
class _Form:
    """A kind's choices: the text of one, and the choice of a text."""

    text: Callable[[Choice], str]
    choice: Callable[[str], Choice]


def _named(field: str) -> _Form:
    """Return the form of choices whose one field is the text."""
    return _Form(lambda choice: str(choice[field]), lambda text: {field: text})


def _yes_or_no(field: str, yes: str, no: str) -> _Form:
    return _Form(lambda choice: yes if choice[field] else no, lambda text: {field: text == yes})


def _algorithm_text(choice: Choice) -> str:
    tile = choice.get("tile")
    return f"{choice['algorithm']}" if tile is None else f"{choice['algorithm']}({tile})"


def _algorithm_choice(text: str) -> Choice:
    match = re.fullmatch(r"(\w+)\((\d+)\)", text)
    if match is None:
        return {"algorithm": text}
    return {"algorithm": match[1], "tile": int(match[2])}


_FORMS = {
    CONVOLUTION: _Form(_algorithm_text, _algorithm_choice),
    PRECISION: _named("weights"),
    LAYOUT: _named("layout"),
    FUSION: _yes_or_no("fused", "fused", "apart"),
    GROUPING: _yes_or_no("grouped", "grouped", "apart"),
}
#: the kinds of decisions that front passes make
FRONT_KINDS = frozenset(_FORMS)


def choice_text(kind: str, choice: Choice) -> str:
    """Return the text of a plan's choice of a kind in `FRONT_KINDS`."""
    return _FORMS[kind].text(choice)


def choice_of_text(kind: str, text: str) -> Choice:
    """Return a plan's choice of a text."""
    return _FORMS[kind].choice(text)

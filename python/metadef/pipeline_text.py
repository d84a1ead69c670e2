"""Reads pipeline text: `builtin.module(fuse-pointwise{max-ops=4},func.func(canonicalize,cse))`.

MLIR's own reader knows nothing of passes written in Python; this one splits the text into elements
and leaves it to `pipeline.py` to say what each name means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metadef.diagnostics import MetadefError

_CLOSING = {"{": "}", "(": ")", "[": "]"}


@dataclass(frozen=True)
class Element:
    """A pass (`children` is None, `options` is the text between braces) or an anchor op."""

    name: str
    options: str = ""
    children: tuple[Element, ...] | None = None


def read_pipeline(text: str) -> tuple[Element, ...]:
    """Return the elements of `text`, a comma-separated list.

    Raises:
        MetadefError: the text is malformed; the place is shown.
    """
    reader = _Reader(text)
    try:
        elements = reader.elements()
    except RecursionError:
        raise MetadefError("pipeline text: nested too deeply") from None
    if reader.at != len(text):
        raise reader.error("',' or the end")
    return elements


def read_options(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield `(key, value)` for each option of `max-ops=4 names=a,b flag`; no `=`: value is None.

    A value in quotes or in braces may hold anything; the quotes and the outer braces are dropped.
    """
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        end = at
        while end < len(text) and not text[end].isspace():
            end = _skip(text, end)
        key, equals, value = text[at:end].partition("=")
        if len(value) >= 2 and (value[0] + value[-1] in ("''", '""', "{}")):
            value = value[1:-1]
        yield key, value if equals else None
        at = end


def _skip(text: str, at: int) -> int:
    """Return the place after the character, quoted string or bracketed group at `at`."""
    if text[at] in "'\"":
        end = text.find(text[at], at + 1)
        if end < 0:
            raise MetadefError(f"pipeline text: no closing {text[at]} for the one in '{text[at:]}'")
        return end + 1
    if text[at] not in _CLOSING:
        return at + 1
    close = _CLOSING[text[at]]
    inner = at + 1
    while inner < len(text) and text[inner] != close:
        inner = _skip(text, inner)
    if inner >= len(text):
        raise MetadefError(f"pipeline text: no closing '{close}' for the one in '{text[at:]}'")
    return inner + 1


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, expected: str) -> MetadefError:
        got = f"'{self.text[self.at :]}'" if self.at < len(self.text) else "the end"
        return MetadefError(
            f"pipeline text '{self.text}': expected {expected} at column {self.at + 1}, got {got}"
        )

    def peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at] if self.at < len(self.text) else ""

    def elements(self) -> tuple[Element, ...]:
        found: list[Element] = []
        if self.peek() in ("", ")"):
            return ()
        while True:
            found.append(self.element())
            if self.peek() != ",":
                return tuple(found)
            self.at += 1

    def element(self) -> Element:
        self.peek()
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] in "-_.*"
        ):
            self.at += 1
        name = self.text[start : self.at]
        if not name:
            raise self.error("the name of a pass or of an op to nest in")
        if self.peek() == "(":
            self.at += 1
            children = self.elements()
            if self.peek() != ")":
                raise self.error("',' or ')'")
            self.at += 1
            return Element(name, children=children)
        if self.peek() == "{":
            start = self.at
            self.at = _skip(self.text, start)
            return Element(name, options=self.text[start + 1 : self.at - 1].strip())
        return Element(name)

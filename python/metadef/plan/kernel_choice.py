"""How the loops of one kernel are cut: what the rules decide, or a plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from metadef.diagnostics import MetadefError, near_names


@dataclass(frozen=True)
class KernelChoice:
    """The choices for a kernel's main nest; None leaves one to the rules.

    Dims are numbered as in the nest. A register block is `rows` rows by `vectors` vectors, with
    `lanes` the dim along vectors; where nothing is reduced, `vectors` are evaluated at once.
    `tiles` has the turns of each loop in a box, the unit that threads take; `chunks` the turns of
    each reduced dim between which sums are in memory (0: all of it); `copied` says whether a box
    copies its rows. A thread takes its share of the boxes in `parts` parts.
    """

    lanes: int | None = None
    rows: int | None = None
    vectors: int | None = None
    tiles: tuple[int, ...] | None = None
    chunks: tuple[int, ...] | None = None
    copied: bool | None = None
    parts: int | None = None

    @property
    def said(self) -> dict[str, int | bool | tuple[int, ...]]:
        """The fields that are not left to the rules."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def to_data(self) -> dict[str, Any]:
        """Return the fields that are said as plain data for JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.said.items()}


#: all is left to the rules
BY_RULE = KernelChoice()

_LISTS, _FLAGS = frozenset({"tiles", "chunks"}), frozenset({"copied"})
FIELDS = tuple(field.name for field in fields(KernelChoice))


def choice_from_data(data: Mapping[str, Any], source: str) -> KernelChoice:
    """Return the choice that plain data says; `source` names it in errors.

    Raises:
        MetadefError: an unknown field, or a value of another type.
    """
    for name, value in data.items():
        if name not in FIELDS:
            hint = near_names(name, FIELDS) or f"; the fields are {', '.join(FIELDS)}"
            raise MetadefError(f"{source}: unknown field '{name}'{hint}")
        if not _has_type(name, value):
            raise MetadefError(f"{source}: field '{name}': expected {_type(name)}, got {value!r}")
    said: dict[str, Any] = {k: tuple(v) if k in _LISTS else v for k, v in data.items()}
    return KernelChoice(**said)


def _has_type(name: str, value: object) -> bool:
    if name in _FLAGS:
        return isinstance(value, bool)
    if name in _LISTS:
        return isinstance(value, list | tuple) and all(map(_is_number, value))
    return _is_number(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _type(name: str) -> str:
    if name in _FLAGS:
        return "true or false"
    number = "a whole number from 0 on"
    return f"a list, each {number}" if name in _LISTS else number

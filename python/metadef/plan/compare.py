"""What two plans have that differs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from metadef.plan.plan import Entry, ExecutionPlan, to_data


def differences(old: ExecutionPlan, new: ExecutionPlan) -> Iterator[str]:
    """Yield a line for each field that differs, decision by decision; evidence is no difference."""
    heads = [to_data(plan) for plan in (old, new)]
    for head in heads:
        del head["entries"]
    yield from _fields("", *heads)
    mine, theirs = _by_place(old), _by_place(new)
    for place, entry in mine.items():
        if place not in theirs:
            yield f"- {_title(entry)}"
    for place, entry in theirs.items():
        if place not in mine:
            yield f"+ {_title(entry)}"
            continue
        lines = list(_fields("", *(_decided(e) for e in (mine[place], entry))))
        if lines:
            yield f"~ {_title(entry)}"
            yield from (f"    {line}" for line in lines)


def _by_place(plan: ExecutionPlan) -> dict[tuple[str, str, bool], Entry]:
    return {(e.kind, e.key, e.by == "person"): e for e in plan.entries}


def _title(entry: Entry) -> str:
    return f"{entry.kind} of {entry.what} [{entry.key[:12]}]"


def _decided(entry: Entry) -> dict[str, Any]:
    return {
        "choice": dict(entry.choice),
        "second": entry.second and dict(entry.second),
        "by": entry.by,
    }


def _fields(path: str, old: Any, new: Any) -> Iterator[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys((*old, *new)):
            yield from _fields(f"{path}.{name}".lstrip("."), old.get(name), new.get(name))
    elif json.dumps(old, default=list) != json.dumps(new, default=list):
        yield f"{path}: {_text(old)} -> {_text(new)}"


def _text(value: Any) -> str:
    return "nothing" if value is None else json.dumps(value, default=list)

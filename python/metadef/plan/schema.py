"""Check a plan's data against plan.schema.json and the rules that span fields."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import TYPE_CHECKING, Any

from metadef.device.rules import endless_numbers
from metadef.device.schema import field, message
from metadef.diagnostics import PlanError

if TYPE_CHECKING:
    import jsonschema

SCHEMA = "plan.schema.json"
#: a layout that there is not, and why
_BLOCKED = "blocked"
_WHY_NOT_BLOCKED = (
    "channels in blocks of a vector are not built, as weights are packed so already, and images "
    "channels last are read and written by whole vectors too"
)


def validate(data: Any, source: str) -> None:
    """Check plain data (what JSON gives) that is a plan; `source` says where it is from.

    Raises:
        PlanError: names the field, the rule and the value.
    """
    for path, number in endless_numbers(data):
        raise PlanError(f"{source}: field '{field(path)}': expected a finite number, got {number}")
    # The deepest error says most: its place is the field itself and not a field around it.
    errors = sorted(_validator().iter_errors(data), key=lambda e: (-len(e.path), str(e.path)))
    if errors:
        first = errors[0]
        why = first.path and first.path[-1] == "layout" and first.instance == _BLOCKED
        raise PlanError(f"{source}: {message(first)}{f': {_WHY_NOT_BLOCKED}' if why else ''}")
    seen: dict[tuple[str, str, str], int] = {}
    for i, entry in enumerate(data["entries"]):
        same = (entry["kind"], entry["key"], entry["by"])
        if same in seen:
            raise PlanError(
                f"{source}: field 'entries[{i}]': expected one {same[0]} by {same[2]} for a key, "
                f"got that of entries[{seen[same]}] again"
            )
        seen[same] = i
        for name in ("choice", "second"):
            wanted = entry.get(name) or {}
            if "tile" in wanted and wanted["algorithm"] == "direct":
                raise PlanError(
                    f"{source}: field 'entries[{i}].{name}.tile': expected a tile for winograd "
                    f"and fft alone, got {wanted['tile']} for {wanted['algorithm']}"
                )


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    import jsonschema

    text = importlib.resources.files("metadef.plan").joinpath(SCHEMA).read_text()
    return jsonschema.Draft202012Validator(json.loads(text))

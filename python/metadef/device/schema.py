"""Check a device descriptor's data against spec.schema.json and the rules that span fields."""

from __future__ import annotations

import functools
import importlib.resources
import json
from typing import TYPE_CHECKING, Any

from metadef.device.rules import broken_rules, endless_numbers
from metadef.diagnostics import DeviceError, near_names

if TYPE_CHECKING:
    import jsonschema

SCHEMA = "spec.schema.json"


def validate(data: Any, source: str) -> None:
    """Check plain data (what JSON gives) that describes a device; `source` says where it is from.

    Raises:
        DeviceError: names the field, the rule and the value.
    """
    for path, number in endless_numbers(data):
        raise DeviceError(
            f"{source}: field '{field(path)}': expected a finite number, got {number}"
        )
    # The deepest error says most: its place is the field itself and not a field around it.
    errors = sorted(_validator().iter_errors(data), key=lambda e: (-len(e.path), str(e.path)))
    if errors:
        raise DeviceError(f"{source}: {message(errors[0])}")
    for place, rule, value in broken_rules(data):
        raise DeviceError(f"{source}: field '{place}': expected {rule}, got {value}")


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    import jsonschema

    text = importlib.resources.files("metadef.device").joinpath(SCHEMA).read_text()
    return jsonschema.Draft202012Validator(json.loads(text))


def message(error: jsonschema.ValidationError) -> str:
    """Say what is wrong: which field, what was expected, what came."""
    place = field(error.absolute_path)
    inside = f"field '{place}': " if place else ""
    known = error.schema.get("properties", {})
    if error.validator == "additionalProperties" and known:
        unknown = next(name for name in error.instance if name not in known)
        hint = near_names(unknown, known) or f"; the fields are {', '.join(known)}"
        return f"{inside}unknown field '{unknown}'{hint}"
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in error.instance)
        rule = known.get(missing, {}).get("description", "a value")
        return f"{inside}missing field '{missing}': expected {rule}"
    rule = error.schema.get("description", error.message)
    return f"{inside}expected {rule}, got {_shown(error.instance)}"


def field(path: Any) -> str:
    """Return a path as Python writes it: `caches[1].bytes`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _shown(value: Any) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else text[:57] + "..."

"""Plans as JSON files."""

from __future__ import annotations

import json
from pathlib import Path

from metadef.diagnostics import PlanError
from metadef.plan.plan import ExecutionPlan, from_data, to_data

#: larger than any plan; a file that is no plan is not read to its end
_MOST_BYTES = 64 << 20


def to_json(plan: ExecutionPlan) -> str:
    """Return a plan as text: a line for each choice, so that two plans compare line by line."""
    return json.dumps(to_data(plan), indent=2) + "\n"


def from_json(text: str, source: str = "plan") -> ExecutionPlan:
    """Return the plan in the text; `source` names it in errors.

    Raises:
        PlanError: not JSON, or a field is missing, unknown or out of range.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PlanError(f"{source}: expected JSON, got {error}") from error
    return from_data(data, source)


def load(path: Path) -> ExecutionPlan:
    """Return the plan in a file.

    Raises:
        PlanError: the file cannot be read, or holds no valid plan.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise PlanError(f"plan '{path}': expected at most {_MOST_BYTES} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(f"plan '{path}': cannot be read: {error}") from error
    return from_json(text, f"plan '{path}'")


def save(plan: ExecutionPlan, path: Path) -> None:
    """Write a plan to a file.

    Raises:
        PlanError: the file cannot be written.
    """
    try:
        path.write_text(to_json(plan), encoding="utf-8")
    except OSError as error:
        raise PlanError(f"plan '{path}': cannot be written: {error}") from error

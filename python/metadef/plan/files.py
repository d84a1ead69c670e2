"""Plans as JSON files."""

from __future__ import annotations

import json
from pathlib import Path

from metadef import json_files
from metadef.diagnostics import PlanError
from metadef.plan.plan import ExecutionPlan, from_data, to_data

_WHAT = "plan"


def to_json(plan: ExecutionPlan) -> str:
    """Return a plan as text: a line for each choice, so that two plans compare line by line."""
    return json.dumps(to_data(plan), indent=2) + "\n"


def from_json(text: str, source: str = _WHAT) -> ExecutionPlan:
    """Return the plan in the text; `source` names it in errors.

    Raises:
        PlanError: not JSON, or a field is missing, unknown or out of range.
    """
    return from_data(json_files.parse(text, source, PlanError), source)


def load(path: Path) -> ExecutionPlan:
    """Return the plan in a file.

    Raises:
        PlanError: the file cannot be read, or holds no valid plan.
    """
    return from_json(json_files.read(path, _WHAT, PlanError), f"{_WHAT} '{path}'")


def save(plan: ExecutionPlan, path: Path) -> None:
    """Write a plan to a file.

    Raises:
        PlanError: the file cannot be written.
    """
    json_files.write(to_json(plan), path, _WHAT, PlanError)

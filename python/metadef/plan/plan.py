"""`ExecutionPlan`: for each decision of a compilation what is wanted, by whom, on what evidence.

Pure data: it says how, never where. `files` reads and writes it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metadef.plan.schema import validate

#: the version of the form that is written and read
VERSION = 1
SCHEDULE, CONVOLUTION, PRECISION = "schedule", "convolution", "precision"
FUSION, LAYOUT, GROUPING = "fusion", "layout", "grouping"
#: whose choice goes first
AUTHORS = ("person", "search", "default")

Choice = Mapping[str, Any]


@dataclass(frozen=True)
class What:
    """A decision's subject for people: the kernel's name, its ops, their source lines, shapes."""

    kernel: str = ""
    ops: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = self.kernel or " ".join(self.ops) or "?"
        return f"{named} ({', '.join(self.shapes)})" if self.shapes else named


@dataclass(frozen=True)
class Evidence:
    """Times of one run in ns: by default, as chosen, by the second choice, and as predicted.

    `spread` is (P90 - P10) / median; `device` is the fingerprint of where it was measured.
    """

    baseline_ns: float | None = None
    measured_ns: float | None = None
    second_ns: float | None = None
    predicted_ns: float | None = None
    spread: float | None = None
    date: str | None = None
    device: str | None = None


@dataclass(frozen=True)
class Entry:
    """One decision: `choice` is wanted wherever `key` is met, and `second` where it cannot be."""

    kind: str
    key: str
    choice: Choice
    by: str = "person"
    second: Choice | None = None
    what: What = What()
    evidence: Evidence | None = None


@dataclass(frozen=True)
class PlannedDevice:
    """The device that a plan was made for; the fingerprint is `DeviceSpec.fingerprint`."""

    name: str
    fingerprint: str


@dataclass(frozen=True)
class ExecutionPlan:
    """A plan: the model (its graph's key), device and compiler that it was made for; entries."""

    model: str
    device: PlannedDevice
    compiler: str
    entries: tuple[Entry, ...] = ()
    objective: str | None = None

    def wanted(self, kind: str, key: str) -> list[tuple[Choice, str]]:
        """Return what is wanted of a decision, and by whom: first choices first, a person's own
        before those of a search."""
        entries = [e for e in self.entries if (e.kind, e.key) == (kind, key)]
        entries.sort(key=lambda e: AUTHORS.index(e.by))
        return [(c, e.by) for e in entries for c in (e.choice, e.second) if c is not None]

    def of_kind(self, kind: str) -> list[str]:
        """Return the keys of a kind of decisions, each once."""
        return list(dict.fromkeys(e.key for e in self.entries if e.kind == kind))

    @property
    def digest(self) -> str:
        """A hash of all that the plan says."""
        return hashlib.sha256(json.dumps(to_data(self), sort_keys=True).encode()).hexdigest()


def to_data(plan: ExecutionPlan) -> dict[str, Any]:
    """Return a plan as plain data for JSON: what is not known is left out."""
    data: dict[str, Any] = {"version": VERSION, **dataclasses.asdict(plan)}
    data["entries"] = [_entry_data(entry) for entry in plan.entries]
    return {name: value for name, value in data.items() if value is not None}


def from_data(data: Any, source: str) -> ExecutionPlan:
    """Return the plan that plain data says; `source` names it in errors.

    Raises:
        PlanError: names the field, the rule and the value.
    """
    validate(data, source)
    fields = {name: data[name] for name in ("model", "compiler")}
    entries = tuple(_entry(entry) for entry in data["entries"])
    device = PlannedDevice(**data["device"])
    return ExecutionPlan(**fields, device=device, entries=entries, objective=data.get("objective"))


def _entry_data(entry: Entry) -> dict[str, Any]:
    data = dataclasses.asdict(entry)
    data["choice"] = _plain(entry.choice)
    data["second"] = None if entry.second is None else _plain(entry.second)
    for name in ("what", "evidence"):
        data[name] = {
            k: _plain(v) for k, v in (data[name] or {}).items() if v not in (None, (), "")
        }
    order = ("kind", "what", "key", "choice", "second", "by", "evidence")
    return {name: data[name] for name in order if data[name] not in (None, {}, "")} | {
        "choice": data["choice"]
    }


def _entry(data: Mapping[str, Any]) -> Entry:
    evidence = data.get("evidence")
    return Entry(
        kind=data["kind"],
        key=data["key"],
        choice=data["choice"],
        by=data["by"],
        second=data.get("second"),
        what=what_from_data(data.get("what", {})),
        evidence=None if evidence is None else Evidence(**evidence),
    )


def what_from_data(data: Mapping[str, Any]) -> What:
    """Return the subject of a decision that plain data names."""
    named: dict[str, Any] = {k: v if isinstance(v, str) else tuple(v) for k, v in data.items()}
    return What(**named)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, tuple | list) else value

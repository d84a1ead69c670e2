"""What became of the decisions that a compilation made, with a plan or to write one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from metadef.plan.plan import Choice, ExecutionPlan, What, what_from_data


@dataclass(frozen=True)
class Decision:
    """One decision: what was chosen ({}: left to the rules), by whom ("default": by the rules), and
    for each choice that was wanted before that why it was refused."""

    kind: str
    key: str
    chosen: Choice
    by: str = "default"
    refused: tuple[tuple[Choice, str], ...] = ()
    what: What = What()

    def to_data(self) -> dict[str, Any]:
        """Return the decision as plain data for JSON."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_data(data: Mapping[str, Any]) -> Decision:
        """Return the decision that `to_data` wrote."""
        refused = tuple((choice, reason) for choice, reason in data["refused"])
        return Decision(**{**data, "what": what_from_data(data["what"]), "refused": refused})


@dataclass(frozen=True)
class Applied:
    """How much of a plan a compilation followed."""

    total: int
    applied: int
    by_person: int
    #: one line for each decision that went otherwise than wanted
    fallbacks: tuple[str, ...]
    #: what the plan was made for that is not what is compiled
    differs: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Tell whether there is nothing to warn of."""
        return self.applied == self.total and not self.differs and not self.fallbacks

    def __str__(self) -> str:
        parts = [f"{self.applied} of {self.total} decisions of the plan applied"]
        missing = self.total - self.applied - len(self.fallbacks)
        if missing:
            parts.append(f"{missing} not met in this model")
        if self.fallbacks:
            parts.append(f"{len(self.fallbacks)} refused")
        if self.by_person:
            parts.append(f"{self.by_person} a person's own")
        if self.differs:
            parts.append(f"it was made for another {', '.join(self.differs)}")
        return parts[0] + (f": {', '.join(parts[1:])}" if parts[1:] else "")


def applied(
    plan: ExecutionPlan, decisions: Iterable[Decision], differs: Iterable[str] = ()
) -> Applied:
    """Return how much of `plan` the `decisions` followed; equal decisions count once."""
    wanted = {(e.kind, e.key) for e in plan.entries}
    met: dict[tuple[str, str], Decision] = {}
    for decision in decisions:
        place = decision.kind, decision.key
        if place in wanted and (place not in met or decision.refused):
            met[place] = decision
    followed = [d for d in met.values() if not d.refused]
    return Applied(
        total=len(wanted),
        applied=len(followed),
        by_person=sum(d.by == "person" for d in followed),
        fallbacks=tuple(_fallback(d) for d in met.values() if d.refused),
        differs=tuple(differs),
    )


def choice_text(choice: Choice) -> str:
    """Return a choice on one line."""
    if not choice:
        return "the default"
    return ", ".join(f"{name} {json.dumps(_plain(value))}" for name, value in choice.items())


def _fallback(decision: Decision) -> str:
    tried = "; ".join(f"{choice_text(choice)}: {reason}" for choice, reason in decision.refused)
    whose = "" if decision.by == "default" else f" (by {decision.by})"
    return (
        f"{decision.kind} of {decision.what}: refused {tried}; instead: "
        f"{choice_text(decision.chosen)}{whose}"
    )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value

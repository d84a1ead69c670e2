"""What a search adds to a plan, and takes from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from metadef.frontend.compiled_model import CompiledModel
from metadef.plan.decision import Decision
from metadef.plan.plan import Choice, Entry, ExecutionPlan


def search_entry(decision: Decision, choice: Choice) -> Entry:
    """Return the entry that makes a decision go another way."""
    return Entry(
        *(decision.kind, decision.key, choice, "search"), second=decision.chosen, what=decision.what
    )


def with_entries(plan: ExecutionPlan, entries: Sequence[Entry]) -> ExecutionPlan:
    """Return the plan with entries, each in place of one of the search for the same decision."""
    for entry in entries:
        same = (entry.kind, entry.key, entry.by)
        kept = tuple(e for e in plan.entries if (e.kind, e.key, e.by) != same)
        plan = replace(plan, entries=(*kept, entry))
    return plan


def met_entries(plan: ExecutionPlan, model: CompiledModel) -> ExecutionPlan:
    """Return the plan without the entries of the search that its model no longer meets: another way
    of one decision takes others away."""
    here = {(d.kind, d.key) for d in model.decisions}
    kept = tuple(e for e in plan.entries if e.by != "search" or (e.kind, e.key) in here)
    return replace(plan, entries=kept)

"""The search over algorithms: each distinct convolution another way, measured in the whole model.

A convolution's algorithm changes its neighbours too (how weights are packed, what fuses), so the
model as a whole says what is better. One decision changes at a time, those that take longest first,
and what is better stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from metadef.dialects.metadef.winograd import LEAST_CHANNELS
from metadef.frontend.compiled_model import CompiledModel
from metadef.plan.convolution import ALGORITHM, TILE
from metadef.plan.decision import Decision
from metadef.plan.plan import CONVOLUTION, Choice, Entry, Evidence, ExecutionPlan

from .budget import Budget
from .calls import Calls, score
from .kernel_search import LEAST_GAIN
from .objective import Objective
from .study import Study, Trial

#: compiles the model with a plan
Compile = Callable[[ExecutionPlan], CompiledModel]
#: calls models in turn
Measure = Callable[[Sequence[CompiledModel]], list[Calls]]


def search_algorithms(
    plan: ExecutionPlan,
    model: CompiledModel,
    compile_with: Compile,
    measure: Measure,
    objective: Objective,
    study: Study,
    budget: Budget,
    until: float,
    evidence: Evidence,
    on_trial: Callable[[str, Trial], None],
) -> tuple[ExecutionPlan, CompiledModel]:
    """Return the plan with better algorithms, and the model compiled with it."""
    decisions = [d for d in model.decisions if d.kind == CONVOLUTION]
    possible = _possible(plan, decisions, compile_with) if decisions else {}
    for decision in decisions:
        subject = f"{CONVOLUTION} {decision.key}"
        known = {_text(t.choice): t for t in study.trials(subject)}
        best: tuple[float, Choice, CompiledModel, Evidence] | None = None
        for choice in possible.get(decision.key, []):
            if _text(choice) in known and not _promises(known[_text(choice)]):
                continue
            if budget.elapsed >= until or not budget.take(1):
                break
            other = compile_with(with_entry(plan, _entry(decision, choice)))
            before, after = measure([model, other])
            ratio = score(objective, before, after)
            trial = Trial(choice, ratio, _spread(after))
            if _text(choice) not in known:
                study.add(subject, trial)
            on_trial(str(decision.what), trial)
            if ratio < (1 - LEAST_GAIN if best is None else best[0]):
                figures = replace(
                    evidence,
                    baseline_ns=before.cost.latency_ns,
                    measured_ns=after.cost.latency_ns,
                    spread=trial.spread,
                )
                best = (ratio, choice, other, figures)
        if best is not None:
            _, choice, model, found = best
            plan = with_entry(plan, replace(_entry(decision, choice), evidence=found))
    return plan, model


def _possible(
    plan: ExecutionPlan, decisions: Sequence[Decision], compile_with: Compile
) -> dict[str, list[Choice]]:
    """Return the other ways that are open to each convolution: all are asked for one at once."""
    found: dict[str, list[Choice]] = {}
    ways: list[Choice] = [{ALGORITHM: "direct"}]
    ways += [{ALGORITHM: "winograd", TILE: tile} for tile in LEAST_CHANNELS]
    for way in ways:
        asked = plan
        for decision in decisions:
            asked = with_entry(asked, _entry(decision, way))
        for made in compile_with(asked).decisions:
            if made.kind == CONVOLUTION and not made.refused:
                found.setdefault(made.key, []).append(way)
    for decision in decisions:
        chosen = _text(decision.chosen)
        found[decision.key] = [w for w in found.get(decision.key, []) if _text(w) != chosen]
    return found


def _entry(decision: Decision, choice: Choice) -> Entry:
    return Entry(
        *(CONVOLUTION, decision.key, choice, "search"), second=decision.chosen, what=decision.what
    )


def with_entry(plan: ExecutionPlan, entry: Entry) -> ExecutionPlan:
    """Return the plan with an entry, in place of one of the search for the same decision."""
    same = (entry.kind, entry.key, entry.by)
    kept = tuple(e for e in plan.entries if (e.kind, e.key, e.by) != same)
    return replace(plan, entries=(*kept, entry))


def _spread(calls: Calls) -> float:
    return (calls.percentile(90) - calls.percentile(10)) / calls.cost.latency_ns


def _promises(trial: Trial) -> bool:
    """Tell whether a trial of an earlier search was better: then it is measured again, beside what
    there is now."""
    return trial.ratio is not None and trial.ratio < 1 - LEAST_GAIN


def _text(choice: Choice) -> str:
    """Return what equal choices have in common."""
    return repr(sorted(choice.items()))

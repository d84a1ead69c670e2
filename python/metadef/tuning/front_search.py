"""The search over the decisions of front passes: each another way, measured in the whole model.

Another algorithm of a convolution, or another type of a product's weights, changes its neighbours
too (how weights are packed, what fuses), so the model as a whole says what is better. One decision
changes at a time, algorithms and types alike, and what is better stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from metadef.dialects.metadef.ops.contraction import NARROW
from metadef.dialects.metadef.winograd import LEAST_CHANNELS
from metadef.frontend.compiled_model import CompiledModel
from metadef.plan.convolution import ALGORITHM, TILE
from metadef.plan.decision import Decision
from metadef.plan.plan import CONVOLUTION, PRECISION, Choice, Entry, Evidence, ExecutionPlan
from metadef.plan.precision import WEIGHTS

from .budget import Budget
from .calls import Calls, score
from .kernel_search import LEAST_GAIN
from .objective import Objective
from .study import Study, Trial


@dataclass(frozen=True)
class Ways:
    """The ways that decisions of one kind may go."""

    kind: str
    choices: tuple[Choice, ...]


ALGORITHMS = Ways(
    CONVOLUTION,
    ({ALGORITHM: "direct"}, *({ALGORITHM: "winograd", TILE: tile} for tile in LEAST_CHANNELS)),
)
TYPES = Ways(PRECISION, tuple({WEIGHTS: type_} for type_ in ("f32", *NARROW)))

#: compiles the model with a plan
Compile = Callable[[ExecutionPlan], CompiledModel]
#: calls models in turn
Measure = Callable[[Sequence[CompiledModel]], list[Calls]]
#: says why a model may not be, None where it may
Objection = Callable[[CompiledModel], str | None]


def search_front(
    kinds: Sequence[Ways],
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
    under: str = "",
    objection: Objection = lambda _: None,
) -> tuple[ExecutionPlan, CompiledModel]:
    """Return the plan with better decisions of `kinds`, and the model compiled with it.

    What there is an `objection` to is not measured; `under` names the condition that it checks, as
    trials under another one say nothing here.
    """
    decisions = [d for d in model.decisions if any(d.kind == ways.kind for ways in kinds)]
    possible = _possible(kinds, plan, decisions, compile_with)
    for decision in decisions:
        subject = f"{decision.kind} {decision.key} {under}".rstrip()
        known = {_text(t.choice): t for t in study.trials(subject)}
        best: tuple[float, Choice, CompiledModel, Evidence] | None = None
        for choice in possible.get(decision.key, []):
            if _text(choice) in known and not _promises(known[_text(choice)]):
                continue
            if budget.elapsed >= until or not budget.take(1):
                break
            other = compile_with(with_entry(plan, _entry(decision, choice)))
            problem = objection(other)
            if problem is not None:
                trial = Trial(choice, None, failed=problem)
                study.add(subject, trial)
                on_trial(str(decision.what), trial)
                continue
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
    kinds: Sequence[Ways],
    plan: ExecutionPlan,
    decisions: Sequence[Decision],
    compile_with: Compile,
) -> dict[str, list[Choice]]:
    """Return the other ways that are open to each decision: all of a kind are asked for one at
    once."""
    found: dict[str, list[Choice]] = {}
    for ways in kinds:
        those = [d for d in decisions if d.kind == ways.kind]
        for way in ways.choices if those else ():
            asked = plan
            for decision in those:
                asked = with_entry(asked, _entry(decision, way))
            for made in compile_with(asked).decisions:
                if made.kind == ways.kind and not made.refused:
                    found.setdefault(made.key, []).append(way)
    for decision in decisions:
        chosen = _text(decision.chosen)
        found[decision.key] = [w for w in found.get(decision.key, []) if _text(w) != chosen]
    return found


def _entry(decision: Decision, choice: Choice) -> Entry:
    return Entry(
        *(decision.kind, decision.key, choice, "search"), second=decision.chosen, what=decision.what
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

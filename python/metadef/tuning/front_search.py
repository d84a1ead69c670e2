"""The search over the decisions of front passes: each another way, measured in the whole model.

Another algorithm or layout of a convolution, another type of a product's weights, or a chain of ops
in another kernel, changes its neighbours too (how weights are packed, what fuses), so the model as
a whole says what is better. First all decisions of a kind go one way, then single ones another, and
what is better stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from metadef.diagnostics import MetadefError
from metadef.dialects.metadef.fourier import LENGTHS
from metadef.dialects.metadef.ops.contraction import NARROW
from metadef.dialects.metadef.winograd import LEAST_CHANNELS
from metadef.frontend.compiled_model import CompiledModel
from metadef.plan.decision import Decision
from metadef.plan.front_choices import choice_of_text
from metadef.plan.plan import (
    CONVOLUTION,
    FUSION,
    GROUPING,
    LAYOUT,
    PRECISION,
    Choice,
    Entry,
    Evidence,
    ExecutionPlan,
)

from .budget import Budget
from .calls import LEAST_GAIN, Calls, is_better, score
from .objective import Objective
from .study import Study, Trial


@dataclass(frozen=True)
class Ways:
    """The ways that decisions of one kind may go.

    Single ones, once all together were tried, get at most the `part` of the search's trials.
    """

    kind: str
    choices: tuple[Choice, ...]
    part: float = 1.0


def _ways(kind: str, *texts: str, part: float = 1.0) -> Ways:
    return Ways(kind, tuple(choice_of_text(kind, text) for text in texts), part)


ALGORITHMS = _ways(
    CONVOLUTION,
    "direct",
    *(f"winograd({tile})" for tile in LEAST_CHANNELS),
    *(f"fft({length})" for length in LENGTHS),
)
#: There are many of them, and few gain.
FUSIONS = _ways(FUSION, "apart", "fused", part=0.1)
GROUPS = _ways(GROUPING, "grouped", "apart")
LAYOUTS = _ways(LAYOUT, "nhwc", "nchw", part=0.1)
TYPES = _ways(PRECISION, "f32", *NARROW)


@dataclass(frozen=True)
class Found:
    """What is better: its cost over that of what was, the plan's entries for it, and the model."""

    ratio: float
    entries: list[Entry]
    model: CompiledModel


#: compiles the model with a plan
Compile = Callable[[ExecutionPlan], CompiledModel]
#: calls models in turn; with True so often that it tells small gains from luck
Measure = Callable[[Sequence[CompiledModel], bool], list[Calls]]
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
    under: str,
    objection: Objection = lambda _: None,
) -> tuple[ExecutionPlan, CompiledModel]:
    """Return the plan with better decisions of `kinds`, in their order, and the model with it.

    What there is an `objection` to is not measured. `under` names the circumstances: trials of
    another model, for another objective or under another limit say nothing here.
    """
    decisions = [d for ways in kinds for d in model.decisions if d.kind == ways.kind]
    possible = _possible(kinds, plan, decisions, model, on_trial)

    def attempt(subject: str, what: str, choice: Choice, those: Sequence[Decision]) -> Found | None:
        """Measure the model with decisions gone another way, unless that is known to lose."""
        subject = f"{subject} {under}"
        known = {_text(t.choice): t for t in study.trials(subject)}.get(_text(choice))
        if known is not None and not _promises(known):
            return None
        if budget.elapsed >= until or not budget.take(1):
            return None
        entries = [_entry(decision, choice) for decision in those]
        try:
            other = compile_with(_with_entries(plan, entries))
            problem = objection(other)
        except MetadefError as error:
            problem = str(error).splitlines()[0]
        if problem is None:
            before, after = measure([model, other], False)
            ratio = score(objective, before, after)
            trial = Trial(choice, ratio, _spread(after))
        else:
            trial = Trial(choice, None, failed=problem)
        if known is None:
            study.add(subject, trial)
        on_trial(what, trial)
        if not _promises(trial):
            return None
        before, after = measure([model, other], True)
        if not is_better(objective, before, after):
            return None
        figures = replace(
            evidence,
            baseline_ns=before.cost.latency_ns,
            measured_ns=after.cost.latency_ns,
            spread=_spread(after),
        )
        return Found(
            score(objective, before, after), [replace(e, evidence=figures) for e in entries], other
        )

    for ways in kinds:
        those = [d for d in decisions if d.kind == ways.kind and _is_met(model, d)]
        all_found = []
        for choice in ways.choices if len(those) > 1 else ():
            open_ = [d for d in those if choice in possible[d.key]]
            if open_:
                keys = " ".join(d.key for d in open_)
                what = f"{len(open_)} of kind {ways.kind}"
                all_found.append(attempt(f"{ways.kind} {keys}", what, choice, open_))
        plan, model = _best(plan, model, all_found)
    left = {ways.kind: ceil(ways.part * budget.trials) for ways in kinds}
    for decision in decisions:
        if not _is_met(model, decision):
            continue
        subject = f"{decision.kind} {decision.key}"
        now, before_it = _text(_chosen(plan, decision)), budget.used_trials
        others = [c for c in (*possible[decision.key], decision.chosen) if _text(c) != now]
        open_to_it = others[: left[decision.kind]]
        found = [attempt(subject, str(decision.what), c, [decision]) for c in open_to_it]
        plan, model = _best(plan, model, found)
        left[decision.kind] -= budget.used_trials - before_it
    return plan, model


def _best(
    plan: ExecutionPlan, model: CompiledModel, found: Sequence[Found | None]
) -> tuple[ExecutionPlan, CompiledModel]:
    """Return the plan with the best of what was found, and its model; as they are without any."""
    better = [f for f in found if f is not None]
    if not better:
        return plan, model
    best = min(better, key=lambda f: f.ratio)
    return met_entries(_with_entries(plan, best.entries), best.model), best.model


def met_entries(plan: ExecutionPlan, model: CompiledModel) -> ExecutionPlan:
    """Return the plan without the entries of the search that its model no longer meets: another way
    of one decision takes others away."""
    here = {(d.kind, d.key) for d in model.decisions}
    kept = tuple(e for e in plan.entries if e.by != "search" or (e.kind, e.key) in here)
    return replace(plan, entries=kept)


def _is_met(model: CompiledModel, decision: Decision) -> bool:
    """Tell whether a model still has a decision: another layout of an op makes another op of it."""
    return any((d.kind, d.key) == (decision.kind, decision.key) for d in model.decisions)


def _chosen(plan: ExecutionPlan, decision: Decision) -> Choice:
    """Return how a decision goes under a plan."""
    wanted = plan.wanted(decision.kind, decision.key)
    return wanted[0][0] if wanted else decision.chosen


def _with_entries(plan: ExecutionPlan, entries: Sequence[Entry]) -> ExecutionPlan:
    for entry in entries:
        plan = with_entry(plan, entry)
    return plan


def _possible(
    kinds: Sequence[Ways],
    plan: ExecutionPlan,
    decisions: Sequence[Decision],
    model: CompiledModel,
    on_trial: Callable[[str, Trial], None],
) -> dict[str, list[Choice]]:
    """Return the other ways that are open to each decision of a model: all of a kind are asked for
    one at once."""
    found: dict[str, list[Choice]] = {}
    for ways in kinds:
        those = [d for d in decisions if d.kind == ways.kind]
        for way in ways.choices if those else ():
            asked = plan
            for decision in those:
                asked = with_entry(asked, _entry(decision, way))
            try:
                decided = model.decisions_under(asked)
            except MetadefError as error:
                failed = str(error).splitlines()[0]
                on_trial(f"{len(those)} of kind {ways.kind}", Trial(way, None, failed=failed))
                continue
            for made in decided:
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
    """Tell whether a trial was better: then it is measured again, with more rounds and beside what
    there is now."""
    return trial.ratio is not None and trial.ratio < 1 - LEAST_GAIN


def _text(choice: Choice) -> str:
    """Return what equal choices have in common."""
    return repr(sorted(choice.items()))

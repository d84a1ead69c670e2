"""The search over the decisions of front passes: each another way, measured in the whole model.

Another algorithm or layout of a convolution, another type of a product's weights, or a chain of ops
in another kernel, changes its neighbours too (how weights are packed, what fuses), so the model as
a whole says what is better. First all decisions of a kind go one way, then single ones another, and
what is better stays. Decisions that only come up under what stayed are searched after the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import ceil

from metadef.diagnostics import MetadefError
from metadef.frontend.compiled_model import CompiledModel
from metadef.plan.decision import Decision
from metadef.plan.plan import Choice, Entry, Evidence, ExecutionPlan

from .budget import Budget
from .calls import Calls, is_better, score
from .entries import met_entries, search_entry, with_entries
from .front_ways import Ways, open_ways
from .objective import Objective
from .study import Study, Trial

#: a trial that is better by less in a short look is not looked at again
_LEAST_PROMISE = 0.01
#: compiles the model with a plan
Compile = Callable[[ExecutionPlan], CompiledModel]
#: calls models in turn; with True so often that it tells small gains from luck
Measure = Callable[[Sequence[CompiledModel], bool], list[Calls]]
#: says why a model may not be, None where it may
Objection = Callable[[CompiledModel], str | None]


@dataclass(frozen=True)
class Attempts:
    """How a whole model is tried another way.

    What there is an `objection` to is not measured. `under` names the circumstances: trials of
    another model, for another objective or under another limit say nothing here. `until` is when
    the last attempt may start, in seconds of the budget.
    """

    compile_with: Compile
    measure: Measure
    objective: Objective
    study: Study
    budget: Budget
    until: float
    evidence: Evidence
    on_trial: Callable[[str, Trial], None]
    under: str
    objection: Objection = lambda _: None


@dataclass(frozen=True)
class _Found:
    """What is better: its cost over that of what was, the plan's entries for it, and the model."""

    ratio: float
    entries: list[Entry]
    model: CompiledModel


def search_front(
    kinds: Sequence[Ways], plan: ExecutionPlan, model: CompiledModel, attempts: Attempts
) -> tuple[ExecutionPlan, CompiledModel]:
    """Return the plan with better decisions of `kinds`, in their order, and the model with it."""
    search = _FrontSearch(kinds, plan, model, attempts)
    seen: set[tuple[str, str]] = set()
    while decisions := [d for d in search.decisions() if (d.kind, d.key) not in seen]:
        seen |= {(d.kind, d.key) for d in decisions}
        search.go_over(decisions)
    return search.plan, search.model


class _FrontSearch:
    """The best plan so far, its model, and what may still be tried."""

    def __init__(
        self,
        kinds: Sequence[Ways],
        plan: ExecutionPlan,
        model: CompiledModel,
        attempts: Attempts,
    ) -> None:
        self.kinds = kinds
        self.plan = plan
        self.model = model
        self.attempts = attempts
        self.left = {ways.kind: ceil(ways.part * attempts.budget.trials) for ways in kinds}

    def decisions(self) -> list[Decision]:
        """Return the model's decisions of the kinds, in their order."""
        return [d for ways in self.kinds for d in self.model.decisions if d.kind == ways.kind]

    def go_over(self, decisions: Sequence[Decision]) -> None:
        """Try other ways for decisions, all of a kind together and one by one."""
        ways_open: dict[tuple[str, str], list[Choice]] = {}
        for ways in self.kinds:
            those = [d for d in decisions if d.kind == ways.kind]

            def tell(way: Choice, why: str, those: list[Decision] = those) -> None:
                what = f"{len(those)} of kind {those[0].kind}"
                self.attempts.on_trial(what, Trial(way, None, failed=why))

            found = open_ways(ways, those, self.plan, self.model, tell)
            ways_open |= {(ways.kind, key): choices for key, choices in found.items()}
        for ways in self.kinds:
            those = [d for d in decisions if d.kind == ways.kind and self._is_met(d)]
            if len(those) > 1:
                self._try_together(ways, those, ways_open)
        for decision in decisions:
            if self._is_met(decision):
                self._try_alone(decision, ways_open[decision.kind, decision.key])

    def _is_met(self, decision: Decision) -> bool:
        """Tell whether the model still has a decision: another layout of an op makes another op."""
        return any((d.kind, d.key) == (decision.kind, decision.key) for d in self.model.decisions)

    def _try_together(
        self,
        ways: Ways,
        decisions: Sequence[Decision],
        ways_open: dict[tuple[str, str], list[Choice]],
    ) -> None:
        """Try each way for all that it is open to at once."""
        found = []
        for choice in ways.choices:
            those = [d for d in decisions if choice in ways_open[d.kind, d.key]]
            if those:
                keys = " ".join(d.key for d in those)
                what = f"{len(those)} of kind {ways.kind}"
                found.append(self._attempt(f"{ways.kind} {keys}", what, choice, those))
        self._keep_best(found)

    def _try_alone(self, decision: Decision, others: Sequence[Choice]) -> None:
        """Try the other ways of one decision, as many as its kind has trials left for."""
        now = _chosen(self.plan, decision)
        before = self.attempts.budget.used_trials
        choices = [c for c in (*others, decision.chosen) if c != now]
        self._keep_best(
            [
                self._attempt(
                    f"{decision.kind} {decision.key}", str(decision.what), choice, [decision]
                )
                for choice in choices[: self.left[decision.kind]]
            ]
        )
        self.left[decision.kind] -= self.attempts.budget.used_trials - before

    def _attempt(
        self, subject: str, what: str, choice: Choice, decisions: Sequence[Decision]
    ) -> _Found | None:
        """Measure the model with decisions gone another way, unless that is known to lose."""
        by = self.attempts
        subject = f"{subject} {by.under}"
        known = next((t for t in reversed(by.study.trials(subject)) if t.choice == choice), None)
        if known is not None and not _promises(known):
            return None
        if by.budget.elapsed >= by.until or not by.budget.take(1):
            return None
        entries = [search_entry(decision, choice) for decision in decisions]
        try:
            other = by.compile_with(with_entries(self.plan, entries))
            problem = by.objection(other)
        except MetadefError as error:
            problem = str(error).splitlines()[0]
        if problem is None:
            before, after = by.measure([self.model, other], False)
            trial = Trial(choice, score(by.objective, before, after), _spread(after))
        else:
            trial = Trial(choice, None, failed=problem)
        if known is None:
            by.study.add(subject, trial)
        by.on_trial(what, trial)
        return self._confirm(other, entries) if _promises(trial) else None

    def _confirm(self, other: CompiledModel, entries: Sequence[Entry]) -> _Found | None:
        """Measure again, with more rounds, what seems better."""
        before, after = self.attempts.measure([self.model, other], True)
        if not is_better(self.attempts.objective, before, after):
            return None
        evidence = replace(
            self.attempts.evidence,
            baseline_ns=before.cost.latency_ns,
            measured_ns=after.cost.latency_ns,
            spread=_spread(after),
        )
        ratio = score(self.attempts.objective, before, after)
        return _Found(ratio, [replace(e, evidence=evidence) for e in entries], other)

    def _keep_best(self, found: Sequence[_Found | None]) -> None:
        """Go on from the best of what was found, if anything was."""
        better = [f for f in found if f is not None]
        if better:
            best = min(better, key=lambda f: f.ratio)
            self.plan = met_entries(with_entries(self.plan, best.entries), best.model)
            self.model = best.model


def _chosen(plan: ExecutionPlan, decision: Decision) -> Choice:
    """Return how a decision goes under a plan."""
    wanted = plan.wanted(decision.kind, decision.key)
    return wanted[0][0] if wanted else decision.chosen


def _spread(calls: Calls) -> float:
    return (calls.percentile(90) - calls.percentile(10)) / calls.cost.latency_ns


def _promises(trial: Trial) -> bool:
    """Tell whether a trial was better: then it is measured again, with more rounds and beside what
    there is now."""
    return trial.ratio is not None and trial.ratio < 1 - _LEAST_PROMISE

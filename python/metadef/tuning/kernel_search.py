"""The search over one kernel's schedules: the model ranks, the best few are measured.

They are measured alone beside the default, interleaved with it; what wins is measured once more, so
that luck is not taken for gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadef.codegen.compile import KernelSource, Settings, compile_sources
from metadef.codegen.kernel import CompiledKernel
from metadef.diagnostics import MetadefError
from metadef.measure.alone import KernelRun, Outcome, Rounds
from metadef.plan.kernel_choice import KernelChoice, choice_from_data

from .budget import Budget
from .measuring import Measurer
from .proxy import Ranked
from .study import Study, Trial

#: choices that are compiled and measured together, beside the default
_TOGETHER = 5
#: Batches without a better choice end the search of a kernel.
_PATIENCE = 2
#: A gain of a kernel smaller than this is not taken for one.
_LEAST_GAIN = 0.01
#: results that differ by more than this, relative to the largest, are wrong
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class Schedules:
    """What is searched: a kernel by default and under a choice, and how a call runs it."""

    name: str
    subject: str
    source: KernelSource
    under: Callable[[KernelChoice], KernelSource]
    run: KernelRun
    threads: int
    measurer: Measurer
    learn: Callable[[Sequence[tuple[KernelChoice, Outcome]]], None]

    def measure(self, kernels: Sequence[CompiledKernel], rounds: Rounds) -> list[Outcome]:
        """Measure builds of the kernel, interleaved."""
        return self.measurer.measure(kernels, self.run, self.threads, rounds)


@dataclass(frozen=True)
class Found:
    """The best of a kernel's choices and the next best, None where it is the default.

    Times are in ns of one run, the default's and the best one's from the same rounds.
    """

    best: KernelChoice | None
    second: KernelChoice | None
    baseline_ns: float
    best_ns: float
    spread: float
    predicted: float | None
    measured: int
    known: int


def search_schedules(
    kernel: Schedules,
    ranked: Sequence[Ranked],
    study: Study,
    settings: Settings,
    budget: Budget,
    until: float,
    on_trial: Callable[[Trial], None],
) -> Found | None:
    """Measure the best predicted choices of a kernel beside its default, until the budget's time
    `until`; None where nothing could be measured.

    What the study has is taken from there.
    """
    default, *others = ranked
    kept = {_as_choice(t): t for t in study.trials(kernel.subject)}
    found = {c: t for c, t in kept.items() if t.ratio is not None}
    known = len(kept)
    waiting = [r for r in others if r.choice not in kept]
    compiled = compile_sources([kernel.source], settings)[kernel.source.key]
    baseline = Outcome()
    in_vain = 0
    while waiting and in_vain < _PATIENCE and not budget.is_over and budget.elapsed < until:
        batch = waiting[: budget.take(min(_TOGETHER, len(waiting)))]
        waiting = waiting[len(batch) :]
        best_before = min((t.ratio or 1.0 for t in found.values()), default=1.0)
        trials, baseline = _measure(kernel, batch, default, compiled, settings)
        if baseline.failed is not None:
            # Nothing is known of the others then, and nothing is kept of them.
            on_trial(Trial(default.choice.to_data(), None, failed=f"default: {baseline.failed}"))
            return None
        for ranked_one, trial in zip(batch, trials, strict=True):
            study.add(kernel.subject, trial)
            on_trial(trial)
            if trial.ratio is not None:
                found[ranked_one.choice] = trial
        best = min((t.ratio or 1.0 for t in found.values()), default=1.0)
        in_vain = 0 if best < best_before - _LEAST_GAIN else in_vain + 1
    measured = len(study.trials(kernel.subject)) - known
    better = [c for c, t in found.items() if t.ratio is not None and t.ratio < 1 - _LEAST_GAIN]
    better.sort(key=lambda c: found[c].ratio or 1.0)
    return _confirmed(kernel, better, found, compiled, baseline, settings, measured, known)


def _confirmed(
    kernel: Schedules,
    better: Sequence[KernelChoice],
    found: dict[KernelChoice, Trial],
    default: CompiledKernel,
    baseline: Outcome,
    settings: Settings,
    measured: int,
    known: int,
) -> Found | None:
    """Measure the two best once more, with more rounds; what is no better now was luck."""
    if not better and not baseline.ns:  # all is known from an earlier search
        (baseline,) = kernel.measure([default], Rounds())
    if not better:
        return _the_default(baseline, measured, known) if baseline.failed is None else None
    chosen = list(better[:2])
    sources = {c: kernel.under(c) for c in chosen}
    failures: dict[str, MetadefError] = {}
    compiled = compile_sources(sources.values(), settings, failures=failures)
    chosen = [c for c in chosen if sources[c].key in compiled]
    first, *outcomes = kernel.measure(
        [default, *(compiled[sources[c].key] for c in chosen)], Rounds(rounds=40)
    )
    if first.failed is not None:
        return None
    pairs = zip(chosen, outcomes, strict=True)
    ratios = sorted((_ratio(o, first), n) for n, (_, o) in enumerate(pairs) if not o.failed)
    ratios = [(r, n) for r, n in ratios if r < 1 - _LEAST_GAIN]
    if not ratios:
        return _the_default(first, measured, known)
    best = ratios[0][1]
    second = chosen[ratios[1][1]] if len(ratios) > 1 else None
    outcome, predicted = outcomes[best], found[chosen[best]].predicted
    return Found(
        chosen[best], second, first.ns, outcome.ns, outcome.spread, predicted, measured, known
    )


def _the_default(outcome: Outcome, measured: int, known: int) -> Found:
    """Return that nothing is better than the default."""
    return Found(None, None, outcome.ns, outcome.ns, outcome.spread, None, measured, known)


def _measure(
    kernel: Schedules,
    batch: Sequence[Ranked],
    default: Ranked,
    compiled: CompiledKernel,
    settings: Settings,
) -> tuple[list[Trial], Outcome]:
    """Return a trial for each choice of a batch, none if the default failed, and its figures."""
    sources = [kernel.under(ranked.choice) for ranked in batch]
    failures: dict[str, MetadefError] = {}
    built = compile_sources(sources, settings, failures=failures)
    # Some choices come to the same code.
    distinct = list(dict.fromkeys(s.key for s in sources if s.key in built))
    first, *outcomes = kernel.measure([compiled, *(built[key] for key in distinct)], Rounds())
    if first.failed is not None:
        return [], first
    by_key = dict(zip(distinct, outcomes, strict=True))
    known = {r.choice: by_key[s.key] for r, s in zip(batch, sources, strict=True) if s.key in built}
    kernel.learn([(default.choice, first), *known.items()])
    trials = []
    for ranked, source in zip(batch, sources, strict=True):
        predicted = ranked.predicted / default.predicted
        if source.key in failures:
            outcome = Outcome(failed=str(failures[source.key]).splitlines()[0])
        else:
            outcome = by_key[source.key]
        trials.append(_trial(ranked.choice, outcome, first, predicted))
    return trials, first


def _trial(choice: KernelChoice, outcome: Outcome, first: Outcome, predicted: float) -> Trial:
    data = choice.to_data()
    failed = outcome.failed
    if failed is None and outcome.difference > _TOLERANCE:
        failed = f"its results differ from the default's by {outcome.difference:.1e}"
    if failed is not None:
        return Trial(data, None, predicted=predicted, failed=failed)
    return Trial(data, _ratio(outcome, first), outcome.spread, predicted)


def _ratio(outcome: Outcome, first: Outcome) -> float:
    """Return time over the default's: the worse of what medians and least times say."""
    return max(outcome.ns / first.ns, outcome.least_ns / first.least_ns)


def _as_choice(trial: Trial) -> KernelChoice:
    return choice_from_data(trial.choice, "study")

"""The whole search for a model: algorithms, then schedules, then what of it holds in the model.

In layers, as each narrows the next: algorithms and fusion decide which kernels there are. The
constraints come first, then the cost model ranks, then the best few are measured. The model under
the whole plan is measured beside the default at last, and what does not hold there goes.
"""

from __future__ import annotations

import contextlib
import datetime
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from metadef.codegen.compile import Settings
from metadef.codegen.version import compiler_version
from metadef.device.levels import capacities
from metadef.diagnostics import MetadefError, MetadefWarning
from metadef.frontend.compiled_model import CompiledModel, compile_model
from metadef.frontend.model_kernels import ModelKernel
from metadef.frontend.options import Options, empty_plan
from metadef.measure.accuracy import output_error
from metadef.measure.energy import energy_of
from metadef.measure.kernel_runs import kernel_run
from metadef.plan.kernel_choice import KernelChoice
from metadef.plan.plan import SCHEDULE, Entry, Evidence, ExecutionPlan

from .budget import Budget, check_budget
from .calls import Calls, is_better, measure_calls, memory_of, score
from .cluster import join_cluster
from .entries import met_entries, with_entries
from .front_search import Attempts, search_front
from .front_ways import ALGORITHMS, FUSIONS, GROUPS, LAYOUTS, TYPES
from .kernel_search import Found, Schedules, search_schedules
from .knowledge import Knowledge
from .measuring import Here, Measurer
from .objective import Objective
from .proxy import rank
from .result import KernelGain, Tuned
from .study import Study, Trial, open_study

#: parts of the budget: algorithms until then, schedules until then; the rest is for the whole model
_ALGORITHMS_UNTIL, _SCHEDULES_UNTIL = 0.4, 0.85
#: trials by prediction for each kernel
_PROXY_TRIALS = 100
#: Kernels that together take less than this part of a call are left as they are.
_LITTLE = 0.02
#: A look at a whole model: rounds, seconds; and one that tells small gains from luck.
_LOOK, _SURE = (7, 0.35), (21, 1.5)
#: bytes of the copies of a kernel's tensors, at most
_MOST_COPIED = 256 << 20


@dataclass(frozen=True)
class Progress:
    """Where a search is: its layer and subject, seconds, measured trials, and the last of them."""

    layer: str
    subject: str
    elapsed: float
    seconds: float
    trials: int
    best: float
    last: Trial | None = None


@dataclass(frozen=True)
class Request:
    """What to search: a model with example arguments, and how."""

    module: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    dynamic_shapes: Any
    options: Options
    objective: Objective
    seconds: float
    trials: int
    seed: int
    storage: str | Path | None
    cluster: str | None = None
    error_limit: float | None = None


def tune_model(
    request: Request,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Tuned:
    """Search for what suits a model on this machine.

    Raises:
        MetadefError: the model cannot be compiled, the budget is too small, another process holds
            the study, or energy is wanted where nothing counts it.
    """
    check_budget(request.seconds, request.trials)
    if request.objective.counts_energy:
        counted = energy_of("cpu")
        if counted.counter == "none":
            raise MetadefError(f"objective: energy cannot be measured here: {counted.reason}")
    spec, threads = request.options.device, request.options.threads
    prefix = f"{compiler_version()} {spec.fingerprint()[:16]} {threads} thread(s)"
    # Beside the entries of the compile cache, which leaves other files alone.
    storage = request.storage or request.options.cache.directory / "studies.sqlite"
    with contextlib.ExitStack() as held:
        study = held.enter_context(open_study(storage, prefix))
        measurer: Measurer = Here()
        if request.cluster is not None:
            measurer = held.enter_context(join_cluster(request.cluster, spec))
        return _Search(request, progress, study, measurer).run()


@dataclass(eq=False)
class _Shares:
    """Gives kernels time: in proportion to what they take of a call, and what one does not need is
    there for the others."""

    budget: Budget
    end: float
    slots: int
    left: float = 1.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def until(self, share: float) -> float | None:
        """Return until when a kernel may be searched, in seconds of the budget; None: not at all,
        as little is left or the time is over."""
        with self._lock:
            now = self.budget.elapsed
            if self.left < _LITTLE or self.budget.is_over or now >= self.end:
                return None
            part = min(1.0, 2 * self.slots * share / self.left)
            self.left -= share
            return now + (self.end - now) * part


class _Search:
    """One search; its methods are its layers."""

    def __init__(
        self,
        request: Request,
        progress: Callable[[Progress], None],
        study: Study,
        measurer: Measurer,
    ) -> None:
        self.request = request
        self.measurer = measurer
        self.knowledge = Knowledge(request.options)
        self.progress = progress
        self.study = study
        self.budget = Budget(request.seconds, request.trials)
        self.best = 0.0
        self.symbols: Mapping[str, int] = {}
        self.footprint = 0
        self.evidence = Evidence(
            date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            device=request.options.device.fingerprint(),
        )

    def run(self) -> Tuned:
        """Search layer by layer."""
        start = empty_plan(self.request.options.device)
        self._tell("compile", "the default")
        default = self._compile(start)
        start = replace(start, model=default.model_key, objective=self.request.objective.text)
        self.symbols = default.profile(
            self.request.args, self.request.kwargs, rounds=1, against_limits=False
        ).symbols
        # about the bytes that a call goes through
        self.footprint = memory_of(default, self.symbols)
        (before,) = self._measure([default])
        limit = self.request.error_limit
        attempts = Attempts(
            self._try,
            self._measure,
            self.request.objective,
            self.study,
            self.budget,
            self.request.seconds * _ALGORITHMS_UNTIL,
            self.evidence,
            partial(self._tell, "algorithms" if limit is None else "algorithms, precision"),
            self._circumstances(default),
            partial(self._objection, default),
        )
        kinds = (ALGORITHMS, GROUPS, *(() if limit is None else (TYPES,)), FUSIONS, LAYOUTS)
        plan, adapted = search_front(kinds, start, default, attempts)
        schedules, kernels = self._schedules(adapted)
        return self._settle(start, default, before, plan, schedules, kernels)

    def _circumstances(self, default: CompiledModel) -> str:
        """Return what a trial of a whole model depends on besides what is tried."""
        limit = self.request.error_limit
        within = "" if limit is None else f" within {limit!r}"
        return f"in {default.model_key[:16]} for {self.request.objective.text}{within}"

    def _schedules(self, model: CompiledModel) -> tuple[list[Entry], list[KernelGain]]:
        """Search the schedules of the kernels, those that take longest first; as many at once as
        can be measured at once."""
        profile = model.profile(self.request.args, self.request.kwargs, against_limits=False)
        ns = {kernel.name: kernel.ns for kernel in profile.kernels}
        total = sum(ns.values()) or 1.0
        kernels = [
            (k, sum(ns[name] for name in k.names) / total) for k in model.plannable_kernels()
        ]
        kernels.sort(key=lambda pair: -pair[1])
        shares = _Shares(self.budget, self.request.seconds * _SCHEDULES_UNTIL, self.measurer.slots)

        def searched(pair: tuple[ModelKernel, float]) -> tuple[ModelKernel, Found | None]:
            kernel, share = pair
            until = shares.until(share)
            try:
                found = None if until is None else self._schedule(kernel, profile.symbols, until)
            except MetadefError as error:  # costs this kernel its search, and no other
                failed = Trial({}, None, failed=str(error).splitlines()[0])
                self._tell("schedules", str(kernel.what), failed)
                return kernel, None
            return kernel, found

        with ThreadPoolExecutor(self.measurer.slots) as pool:
            found = [(kernel, f) for kernel, f in pool.map(searched, kernels) if f is not None]
        entries = [self._schedule_entry(k, f.best, f) for k, f in found if f.best is not None]
        return entries, [_gain(kernel, f) for kernel, f in found]

    def _schedule(
        self, kernel: ModelKernel, symbols: Mapping[str, int], until: float
    ) -> Found | None:
        """Search one kernel's schedules."""
        space = kernel.space()
        if not space.fields:
            return None
        run = kernel_run(kernel.source.text, symbols)
        copies = self._copies(run.bytes)
        predict = self.knowledge.predictor(kernel, symbols, copies)
        ranked = rank(space, predict, _PROXY_TRIALS, self.request.seed)
        options = self.request.options
        return search_schedules(
            Schedules(
                kernel.what.kernel,
                f"{SCHEDULE} {kernel.key} {sorted(symbols.items())}",
                kernel.source,
                kernel.under,
                replace(run, copies=copies),
                options.threads,
                self.measurer,
                partial(self.knowledge.learn, kernel, symbols, copies),
            ),
            ranked,
            self.study,
            Settings(options.cache, options.jobs, lambda name, cached: None, keep_failures=False),
            self.budget,
            until,
            partial(self._tell, "schedules", str(kernel.what)),
        )

    def _copies(self, size: int) -> int:
        """Return how many copies of `size` bytes are gone over, so that a kernel finds its data
        where it does in a model that goes through as many bytes."""
        spec, threads = self.request.options.device, self.request.options.threads
        *caches, _ = capacities(spec, threads).values()
        wanted = min(self.footprint, 2 * max(caches, default=0), _MOST_COPIED)
        return max(1, -(-wanted // max(size, 1)))

    def _schedule_entry(self, kernel: ModelKernel, best: KernelChoice, found: Found) -> Entry:
        predicted = None if found.predicted is None else found.predicted * found.baseline_ns
        return Entry(
            *(SCHEDULE, kernel.key, best.to_data(), "search"),
            second=None if found.second is None else found.second.to_data(),
            what=kernel.what,
            evidence=replace(
                self.evidence,
                baseline_ns=found.baseline_ns,
                measured_ns=found.best_ns,
                predicted_ns=predicted,
                spread=found.spread,
            ),
        )

    def _settle(
        self,
        start: ExecutionPlan,
        default: CompiledModel,
        before: Calls,
        plan: ExecutionPlan,
        schedules: list[Entry],
        kernels: list[KernelGain],
    ) -> Tuned:
        """Measure the model with all of it, with parts of it, and without; keep what is best."""
        whole, only_schedules = with_entries(plan, schedules), with_entries(start, schedules)
        plans = {p.digest: p for p in (whole, plan, only_schedules) if p.entries}
        tried: list[tuple[ExecutionPlan, CompiledModel]] = []
        for tried_plan in plans.values():
            try:
                model = self._try(tried_plan)
                problem = self._objection(default, model)
            except MetadefError as error:  # what its parts did not tell: the others stay
                problem = str(error).splitlines()[0]
            if problem is None:
                tried.append((tried_plan, model))
            else:
                self._tell("whole model", "a plan", Trial({}, None, failed=problem))
        models = [model for _, model in tried]
        self._tell("whole model", f"{len(models)} plan(s) beside the default")
        first, *others = self._measure([default, *models])
        scores = [score(self.request.objective, first, calls) for calls in others]
        chosen, model = tried[scores.index(min(scores))] if tried else (start, default)
        # What is best of several is so by luck too: only the measurement that follows counts.
        after, *measured = self._measure([default, *([model] if tried else [])], sure=True)
        adapted = measured[0] if measured else after
        if measured and is_better(self.request.objective, after, adapted):
            chosen = met_entries(chosen, model)
        else:
            chosen, model, adapted = start, default, after
        return Tuned(
            *(chosen, self.request.objective, before, after, adapted, tuple(kernels)),
            *(self.budget.used_trials, self.budget.elapsed),
            error=self._error(default, model),
        )

    def _error(self, default: CompiledModel, model: CompiledModel) -> float | None:
        """Return how far outputs are from the default's; None where nobody set a limit."""
        if self.request.error_limit is None:
            return None
        return output_error(model, default, self.request.args, self.request.kwargs)

    def _objection(self, default: CompiledModel, model: CompiledModel) -> str | None:
        """Return why a model may not be: its outputs are too far from the default's."""
        error, limit = self._error(default, model), self.request.error_limit
        if error is None or limit is None or error <= limit:
            return None
        return f"outputs are off by {error:.1e}, allowed are {limit:.1e}"

    def _compile(self, plan: ExecutionPlan) -> CompiledModel:
        request = self.request
        options = replace(request.options, plan=plan)
        return compile_model(
            request.module, request.args, request.kwargs, request.dynamic_shapes, options, None
        )

    def _try(self, plan: ExecutionPlan) -> CompiledModel:
        """Compile with a plan of the search's: how much of it applies is for the search to see."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MetadefWarning)
            return self._compile(plan)

    def _measure(self, models: Sequence[CompiledModel], sure: bool = False) -> list[Calls]:
        options = self.request.options
        rounds, seconds = _SURE if sure else _LOOK
        return measure_calls(
            models,
            self.request.args,
            self.request.kwargs,
            rounds=rounds,
            seconds=seconds,
            symbols=self.symbols,
            at_once=self.request.objective.calls_at_once(options.device.cores, options.threads),
            energy=self.request.objective.counts_energy,
        )

    def _tell(self, layer: str, subject: str, trial: Trial | None = None) -> None:
        if trial is not None and trial.ratio is not None:
            self.best = max(self.best, 1 - trial.ratio)
        budget = self.budget
        self.progress(
            Progress(
                *(layer, subject, budget.elapsed, budget.seconds, budget.used_trials),
                *(self.best, trial),
            )
        )


def _gain(kernel: ModelKernel, found: Found) -> KernelGain:
    return KernelGain(
        name=kernel.what.kernel,
        shapes=kernel.what.shapes,
        runs=kernel.runs,
        default_ns=found.baseline_ns,
        adapted_ns=found.best_ns,
        trials=found.measured,
        known=found.known,
    )

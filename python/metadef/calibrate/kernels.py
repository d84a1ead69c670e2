"""Measures kernels under their choices, and says what a table keeps of it."""

from __future__ import annotations

import hashlib
import random
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from metadef.codegen.compile import KernelSource, Settings, compile_sources, under_choice
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.version import code_version
from metadef.cost.table.measurement import Measurement
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.measure.alone import Outcome, Rounds, measure_alone
from metadef.measure.kernel_runs import copies_from_memory, kernel_run
from metadef.plan.kernel_choice import KernelChoice
from metadef.predict.described import DescribedKernel, text_key
from metadef.predict.outcomes import as_measurement, now
from metadef.runtime.cache import Cache

from .visits import visited

#: candidates of which some are drawn
_CANDIDATES = 96
#: what needs more copies to be found in memory is so small that a model keeps it in its caches
_MOST_COPIES = 256
#: choices of a kernel that are measured with data in memory, too
_COLD_CHOICES = 1


@dataclass(eq=False)
class Trial:
    """A kernel and the choices to measure, the default first, for values of its symbols."""

    source: KernelSource
    kernel: DescribedKernel
    choices: list[KernelChoice]
    values: list[Mapping[str, int]]
    sources: dict[KernelChoice, KernelSource] = field(default_factory=dict)


@dataclass(frozen=True)
class Effort:
    """How to measure: threads, rounds, how often a group of kernels is gone over, at least and at
    most (`visits.py`), and whether data in memory is a case of its own."""

    threads: tuple[int, ...] = (1,)
    rounds: Rounds = Rounds()
    visits: int = 2
    most_visits: int = 5
    cold: bool = True


def make_trial(
    source: KernelSource,
    kernel: DescribedKernel,
    choices: int,
    values: Sequence[Mapping[str, int]],
    seed: int = 0,
) -> Trial:
    """Return a kernel with its default and so many others of its candidates, drawn with a seed."""
    others = list(islice(kernel.space.candidates(_CANDIDATES), 1, None)) if choices else []
    random.Random(f"{seed} {kernel.structure}").shuffle(others)
    drawn = islice((c for c in others if kernel.space.is_legal(c)), choices)
    trial = Trial(source, kernel, [kernel.default, *drawn], list(values) or [{}])
    trial.sources = {
        c: source if n == 0 else under_choice(source, c) for n, c in enumerate(trial.choices)
    }
    return trial


def measure_trials(
    trials: Iterable[Trial], spec: DeviceSpec, cache: Cache, effort: Effort, done: set[object]
) -> tuple[list[Measurement], dict[str, str]]:
    """Compile and measure what is not in `done` (`Measurement.place`); return it, and the texts.

    What cannot be compiled, crashes or hangs is a measurement that has failed.
    """
    pending = [(trial, _pending(trial, spec, effort, done)) for trial in trials]
    pending = [(trial, runs) for trial, runs in pending if runs]
    wanted = [trial.sources[c] for trial, runs in pending for c in _choices_of(trial, runs)]
    failures: dict[str, MetadefError] = {}
    settings = Settings(cache, 2, lambda name, cached: None, keep_failures=False)
    compiled = compile_sources(wanted, settings, failures=failures)
    runs = [(trial, about) for trial, abouts in pending for about in abouts]
    outcomes = visited(
        runs,
        lambda run: _outcomes(*run, compiled, failures, effort),
        effort.visits,
        effort.most_visits,
    )
    found = [
        as_measurement(m, outcome)
        for (_, about), those in zip(runs, outcomes, strict=True)
        for m, outcome in zip(about, those, strict=True)
    ]
    done |= {m.place for m in found}
    texts = {text_key(trial.source.text): trial.source.text for trial, _ in pending}
    return found, texts


def _choices_of(trial: Trial, runs: list[list[Measurement]]) -> list[KernelChoice]:
    said = [m.choice for about in runs for m in about]
    return [c for c in trial.choices if c.to_data() in said]


def _pending(
    trial: Trial, spec: DeviceSpec, effort: Effort, done: set[object]
) -> list[list[Measurement]]:
    """Return what is to be measured together: same tensors, same threads, the default first."""
    runs = []
    for values in trial.values:
        run = kernel_run(trial.source.text, values)
        for threads in effort.threads:
            copies = copies_from_memory(run, spec, threads)
            for count in (1, copies) if effort.cold and 1 < copies <= _MOST_COPIES else (1,):
                choices = trial.choices if count == 1 else trial.choices[: 1 + _COLD_CHOICES]
                about = [
                    trial.kernel.about(
                        c, values, threads, count, spec.fingerprint(), code_version()
                    )
                    for c in choices
                ]
                missing = [m for m in about if m.place not in done]
                if missing:
                    # The default always runs with them: what is slow in all of them is the machine.
                    runs.append(missing if about[0] in missing else [about[0], *missing])
    return runs


def _outcomes(
    trial: Trial,
    about: list[Measurement],
    compiled: Mapping[str, CompiledKernel],
    failures: Mapping[str, MetadefError],
    effort: Effort,
) -> list[Outcome]:
    by_choice = {str(c.to_data()): trial.sources[c].key for c in trial.choices}
    keys = [by_choice[str(dict(m.choice))] for m in about]
    run = kernel_run(trial.source.text, about[0].symbols, copies=about[0].copies)
    good = [key for key in keys if key in compiled]
    kernels = [compiled[key] for key in good]
    outcomes = measure_alone(kernels, run, about[0].threads, effort.rounds) if kernels else []
    measured = dict(zip(good, outcomes, strict=True))
    return [
        measured.get(key) or Outcome(failed=str(failures.get(key, "not compiled")).splitlines()[0])
        for key in keys
    ]


def failed_case(kind: str, name: str, spec: DeviceSpec, error: str) -> Measurement:
    """Return what a table keeps of a case that gave no kernels."""
    key = hashlib.sha256(name.encode()).hexdigest()[:32]
    return Measurement(
        *(key, key, kind, "", "", False, 1, 1, spec.fingerprint(), code_version()),
        failed=f"{name}: {error}",
        date=now(),
        host=socket.gethostname(),
    )

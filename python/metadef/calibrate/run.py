"""Measures all kinds of kernels on this machine, and keeps what it found in a table.

calibrate(spec, Table(default_table()), threads=(1, 2), progress=print)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch

from metadef.codegen.version import code_version
from metadef.cost.table.measurement import Measurement
from metadef.cost.table.table import Table
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.frontend.model_kernels import model_kernels
from metadef.measure.alone import Rounds
from metadef.predict.described import describe
from metadef.runtime.cache import Cache, default_cache

from .case import Case
from .cases import cases
from .kernels import Effort, Trial, failed_case, make_trial, measure_trials

#: called with what is measured next, and how much is done out of how much
Progress = Callable[[str, int, int], None]

#: cases that are compiled together, which keeps all cores busy, and then measured
_TOGETHER = 8
#: kernels beyond this working set get few choices: each costs long
_LARGE_BYTES = 16 << 20
_FEW = 2
_QUICK = Effort(rounds=Rounds(tries=1), visits=1, most_visits=1, cold=False)


@dataclass(frozen=True)
class Summary:
    """What a calibration did."""

    measured: int
    flagged: int
    failed: int
    cases: int


def calibrate(
    spec: DeviceSpec,
    table: Table,
    *,
    threads: Sequence[int] = (1,),
    kinds: Sequence[str] | None = None,
    quick: bool = False,
    wanted: Sequence[Case] | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Measure what the table does not have of all kinds or `kinds`, or of the cases `wanted`; and
    again what it has flagged.

    Each group of cases is kept as soon as it is measured, so that a calibration that was stopped
    goes on where it was.

    Raises:
        MetadefError: there is no such kind, or the device cannot run here.
    """
    effort = replace(_QUICK if quick else Effort(), threads=tuple(threads))
    wanted = cases(spec, kinds, quick) if wanted is None else wanted
    cache = cache or default_cache()
    known = table.find(device=spec.fingerprint(), compiler=code_version())
    done: set[object] = {m.place for m in known if not m.flagged}
    found: list[Measurement] = []
    for start in range(0, len(wanted), _TOGETHER):
        group = wanted[start : start + _TOGETHER]
        if progress is not None:
            progress(group[0].kind, start, len(wanted))
        trials: list[Trial] = []
        for case in group:
            try:
                trials += _trials(case, spec, quick)
            except MetadefError as error:
                failed = failed_case(case.kind, case.name, spec, str(error).splitlines()[0])
                if failed.place not in done:
                    table.record([failed])
                    found.append(failed)
                    done.add(failed.place)
        measured, texts = measure_trials(trials, spec, cache, effort, done)
        table.record(measured, texts)
        found += measured
    return Summary(
        measured=sum(m.failed is None for m in found),
        flagged=sum(m.flagged for m in found),
        failed=sum(m.failed is not None for m in found),
        cases=len(wanted),
    )


def _trials(case: Case, spec: DeviceSpec, quick: bool) -> list[Trial]:
    """Return the kernels of a case with the choices to measure."""
    torch.manual_seed(0)
    model, args, *rest = case.make()
    kwargs = rest[0] if rest else None
    shapes = None
    if case.values:
        batch = torch.export.Dim("B", min=2, max=4096)
        rows = args[0].shape[0]
        shapes = {"args": tuple({0: batch} if a.shape[0] == rows else None for a in args)}
    if isinstance(model, torch.nn.Module):
        model.eval()
    kernels = model_kernels(model, args, kwargs, spec=spec, dynamic_shapes=shapes)
    values = [{"B": value} for value in case.values]
    trials = []
    for kernel in kernels:
        large = kernel.summary.work.bytes.evaluate({"B": 1}) > _LARGE_BYTES
        choices = min(case.choices, _FEW) if large or quick else case.choices
        described = describe(kernel.source.text)
        if not case.kinds or described.traits.kind in case.kinds:
            trials.append(make_trial(kernel.source, described, choices, values))
    return trials

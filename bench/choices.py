#!/usr/bin/env python3
"""Measures all choices for some kernels: how near the default and the predicted best come to the
best there is.

    bench/choices.py --threads 1 --limit 128

For each kernel every legal choice, up to a limit, is compiled and measured alone beside the
default, a few at a time, interleaved. The best few are then measured again, all together, with the
default and the first five by prediction. The best of many is so by luck too, so the figures are of
a third time: the default, the best, and the best of the predicted. Records go to
bench/results/choices.jsonl.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from devices import device_here
from record import circumstances, keep
from rich.table import Table
from torch import nn

from metadef.api import compile
from metadef.cli.console import progress_bar, stdout
from metadef.cli.usage import count
from metadef.codegen.compile import Settings, compile_sources
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.frontend.model_kernels import ModelKernel
from metadef.frontend.options import default_options, empty_plan
from metadef.measure.alone import Outcome, Rounds, measure_alone
from metadef.measure.kernel_runs import kernel_run
from metadef.plan.kernel_choice import KernelChoice
from metadef.runtime.cache import default_cache
from metadef.tuning.knowledge import Knowledge

_TOGETHER = 7
#: choices by prediction, and by the first measurement, that are measured to the end
_PREDICTED, _MEASURED = 5, 5
_LAST = Rounds(rounds=40)


@dataclass(frozen=True)
class Case:
    """A module whose largest kernel is looked at, with arguments."""

    build: Callable[[], nn.Module]
    shape: tuple[int, ...]


class _Products(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ x.transpose(-1, -2)


class _Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + nn.functional.gelu(self.norm(x))


CASES = {
    "linear": Case(lambda: nn.Linear(768, 768), (128, 768)),
    "linear_gelu": Case(lambda: nn.Sequential(nn.Linear(768, 1536), nn.GELU()), (128, 768)),
    "odd_linear": Case(lambda: nn.Linear(509, 251), (77, 509)),
    "matrix_vector": Case(lambda: nn.Linear(1024, 1024), (1, 1024)),
    "products": Case(_Products, (12, 128, 64)),
    "conv_1x1": Case(lambda: nn.Conv2d(256, 128, 1), (1, 256, 28, 28)),
    "conv_3x3_stride_2": Case(lambda: nn.Conv2d(64, 128, 3, stride=2, padding=1), (1, 64, 56, 56)),
    "conv_5x5": Case(lambda: nn.Conv2d(32, 64, 5, padding=2), (1, 32, 28, 28)),
    "depthwise": Case(lambda: nn.Conv2d(144, 144, 3, padding=1, groups=144), (1, 144, 56, 56)),
    "softmax": Case(lambda: nn.Softmax(-1), (1024, 512)),
    "norm_gelu": Case(lambda: _Residual(768), (512, 768)),
}


def main() -> int:
    """Measure; print the table, keep the records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--kernels", default=",".join(CASES), help=f"of {', '.join(CASES)} (all)")
    add("--device", default="host", help="host, a shipped device whose code is made, or a file")
    add("--threads", type=count, default=1, help="threads (1)")
    add("--limit", type=count, default=128, help="choices of each kernel at most (128)")
    add("--no-record", action="store_true", help="keep no record")
    args = parser.parse_args()
    names = args.kernels.split(",")
    unknown = [name for name in names if name not in CASES]
    if unknown:
        parser.error(f"--kernels: unknown {', '.join(unknown)}; there are {', '.join(CASES)}")
    where = circumstances()
    records = []
    with progress_bar("measuring choices") as tell:
        for done, name in enumerate(names):
            tell(name, done, len(names))
            try:
                found = measure_case(name, device_here(args.device), args.threads, args.limit)
            except MetadefError as error:
                print(f"bench/choices.py: {name}: {error}", file=sys.stderr)
                return 1
            records.append(where | found)
            if not args.no_record:
                keep("choices", records[-1:])
    stdout().print(table(records))
    return 0


def measure_case(name: str, device: DeviceSpec, threads: int, limit: int) -> dict[str, Any]:
    """Measure the choices of the largest kernel of a case."""
    torch.manual_seed(0)
    case = CASES[name]
    model = compile(
        *(case.build().eval(), (torch.randn(case.shape),)),
        device=device,
        threads=threads,
        plan=empty_plan(device),
    )
    kernels = [(k, k.space()) for k in model.plannable_kernels()]
    kernel, space = max(kernels, key=lambda pair: pair[1].features()["flops"])
    choices = list(islice(space.candidates(), limit))
    options = default_options(device=device, threads=threads)
    predict = Knowledge(options).predictor(kernel, {}, 1)
    ranked = sorted(zip(predict(choices), range(len(choices)), strict=True))
    first = _measured(kernel, choices, threads)
    by_time = sorted(first, key=lambda n: first[n])
    finalists = list(dict.fromkeys([0, *(n for _, n in ranked[:_PREDICTED]), *by_time[:_MEASURED]]))
    times = _times(kernel, choices, finalists, threads)
    of_predicted = min((n for _, n in ranked[:_PREDICTED] if n in times), key=lambda n: times[n])
    best = min(times, key=lambda n: times[n])
    times = _times(kernel, choices, list(dict.fromkeys([0, best, of_predicted])), threads)
    best = min(times, key=lambda n: times[n])
    return {
        "kernel": name,
        "device": device.name,
        "threads": threads,
        "choices": len(choices),
        "measured": len(first),
        "default_ns": times[0],
        "predicted_ns": times[of_predicted],
        "best_ns": times[best],
        "best": choices[best].to_data(),
        "default": choices[0].to_data(),
        "ratios": [first.get(n) for n in range(len(choices))],
        "predictions": [p for p, _ in sorted(ranked, key=lambda pair: pair[1])],
    }


def _measured(
    kernel: ModelKernel, choices: Sequence[KernelChoice], threads: int
) -> dict[int, float]:
    """Return the time of each choice over the default's, by number."""
    ratios = {0: 1.0}
    for start in range(1, len(choices), _TOGETHER):
        numbers = [0, *range(start, min(start + _TOGETHER, len(choices)))]
        default, *others = _outcomes(kernel, [choices[n] for n in numbers], threads, Rounds())
        for n, outcome in zip(numbers[1:], others, strict=True):
            if outcome.failed is None and default.failed is None:
                ratios[n] = outcome.ns / default.ns
    return ratios


def _times(
    kernel: ModelKernel, choices: Sequence[KernelChoice], numbers: Sequence[int], threads: int
) -> dict[int, float]:
    """Return the ns of the choices of these numbers, measured together, of those that ran."""
    outcomes = _outcomes(kernel, [choices[n] for n in numbers], threads, _LAST)
    return {n: o.ns for n, o in zip(numbers, outcomes, strict=True) if o.failed is None}


def _outcomes(
    kernel: ModelKernel, choices: Sequence[KernelChoice], threads: int, rounds: Rounds
) -> list[Outcome]:
    sources = [kernel.under(choice) for choice in choices]
    settings = Settings(default_cache(), threads, lambda name, cached: None, keep_failures=False)
    failures: dict[str, MetadefError] = {}
    built = compile_sources(sources, settings, failures=failures)
    distinct = list(dict.fromkeys(s.key for s in sources if s.key in built))
    run = kernel_run(kernel.source.text, {})
    found = measure_alone([built[key] for key in distinct], run, threads, rounds)
    by_key = dict(zip(distinct, found, strict=True))
    return [by_key.get(s.key, Outcome(failed="not compiled")) for s in sources]


def table(records: Sequence[dict[str, Any]]) -> Table:
    """Return what is lost against the best of all choices, in percent of its time."""
    shown = Table(title="time over that of the best choice")
    for name in ("kernel", "threads", "choices", "best us", "default", "best of 5 predicted"):
        shown.add_column(name, justify="left" if name == "kernel" else "right")
    for r in records:
        shown.add_row(
            *(r["kernel"], str(r["threads"]), f"{r['measured']} of {r['choices']}"),
            f"{r['best_ns'] / 1e3:.1f}",
            *(f"{r[key] / r['best_ns'] - 1:+.1%}" for key in ("default_ns", "predicted_ns")),
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Tunes models on the devices that this machine can be, and runs each plan on each of them.

    bench/tuning.py --models resnet50_224,bert_12_layers --devices host,x86-64-v2 --budget 10m
    bench/tuning.py --defaults            # no search: what the compiler decides for each device

A device is `host`, or a shipped one whose CPU code generation is kept to (`devices.py`). After the
searches each model runs on each device by default, and as every device would have it, in turn: a
plan should be best where it was made. A search leaves most decisions to the compiler, which makes
them otherwise for another device; so these plans are said in full, the search's decisions and the
compiler's. What was found goes to bench/results/plans/, records to bench/results/tuning.jsonl.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass, replace
from typing import Any

import torch
from devices import device_here
from record import RESULTS, circumstances, keep
from rich.table import Table
from workloads import names_of, row

import metadef
from metadef.cli.console import progress_bar, stdout
from metadef.cli.models import Model
from metadef.cli.usage import count
from metadef.diagnostics import MetadefError, MetadefWarning
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.options import empty_plan
from metadef.measure.timing import is_faster
from metadef.plan.files import save
from metadef.plan.plan import ExecutionPlan
from metadef.tuning.budget import parse_seconds
from metadef.tuning.calls import Calls, measure_calls, time_ratio
from metadef.tuning.entries import with_entries
from metadef.tuning.result import Tuned

_ROUNDS, _SECONDS = 31, 4.0
_PLANS = RESULTS / "plans"


@dataclass(frozen=True)
class Setting:
    """A model on a device, with the plan that a search found there."""

    model: str
    device: str
    threads: int
    tuned: Tuned | None
    #: the search's decisions, and all others as the compiler makes them on this device
    whole: ExecutionPlan

    def compiled(self, plan: ExecutionPlan) -> CompiledModel:
        """Compile the model on this device with a plan."""
        return _compiled(self.model, self.device, self.threads, plan)


def main() -> int:
    """Tune, compare; print the table, keep the records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--models", default="resnet50_224,mobilenet_v2_224,bert_12_layers", help="rows of bench")
    add("--devices", default="host,intel-sandy-bridge,x86-64-v2", help="host, shipped devices")
    add("--threads", type=count, default=1, help="threads (1)")
    add("--budget", metavar="TIME", default="10m", help="of each search (10m)")
    add("--defaults", action="store_true", help="search nothing")
    add("--no-record", action="store_true", help="keep no plan and no record")
    args = parser.parse_args()
    devices = args.devices.split(",")
    where = circumstances()
    records: list[dict[str, Any]] = []
    try:
        budget = 0.0 if args.defaults else parse_seconds(args.budget)
        for name in names_of(args.models):
            found = [_setting(name, device, args.threads, budget) for device in devices]
            for record in _compare(found):
                records.append(where | record | {"budget_s": budget})
                if not args.no_record:
                    keep("tuning", records[-1:])
            if not args.no_record:
                for setting in found:
                    _keep_plan(setting)
    except MetadefError as error:
        print(f"bench/tuning.py: {error}", file=sys.stderr)
        return 1
    stdout().print(table(records, devices))
    return 0


def _setting(name: str, device: str, threads: int, budget: float) -> Setting:
    tuned = _tune(name, device, threads, budget) if budget else None
    plan = tuned.plan if tuned else empty_plan(device_here(device))
    default = _compiled(name, device, threads, plan).default_plan()
    return Setting(name, device, threads, tuned, with_entries(default, plan.entries))


def _tune(name: str, device: str, threads: int, budget: float) -> Tuned:
    model = _model(name)
    title = f"{name} on {device}"
    with progress_bar(title) as tell:
        return metadef.tune(
            *(model.module, model.args, model.kwargs),
            device=device_here(device),
            threads=threads,
            budget=budget,
            progress=lambda p: tell(p.layer, int(p.elapsed), int(p.seconds)),
        )


def _compare(settings: list[Setting]) -> list[dict[str, Any]]:
    """Run the model on each device, by default and as each device has it."""
    records = []
    for here in settings:
        plans = {s.device: s.whole for s in settings}
        default, *others = _calls(here, [empty_plan(device_here(here.device)), *plans.values()])
        calls = dict(zip(plans, others, strict=True))
        own = calls[here.device]
        records.append(
            {
                "model": here.model,
                "device": here.device,
                "threads": here.threads,
                "default_ns": default.cost.latency_ns,
                "time_over_default": {d: time_ratio(default, c) for d, c in calls.items()},
                "time_over_own": {d: time_ratio(own, c) for d, c in calls.items()},
                "by_sign_test": {d: _verdict(own, c) for d, c in calls.items()},
                "decisions": len(here.whole.entries),
                "decided_otherwise": {d: _apart(here.whole, p) for d, p in plans.items()},
                "search": None if here.tuned is None else _found(here.tuned),
            }
        )
    return records


def _found(tuned: Tuned) -> dict[str, Any]:
    return {
        "seconds": round(tuned.seconds, 1),
        "trials": tuned.trials,
        "gain": tuned.gain,
        "entries": [entry.kind for entry in tuned.plan.entries],
        "kernels": [
            {"name": k.name, "runs": k.runs, "ns": [k.default_ns, k.adapted_ns]}
            for k in tuned.kernels
        ],
    }


def _verdict(own: Calls, other: Calls) -> str:
    """Tell whether another plan is slower than the device's own by more than chance."""
    if is_faster(other.series, own.series):
        return "slower"
    return "faster" if is_faster(own.series, other.series) else "same"


def _apart(one: ExecutionPlan, other: ExecutionPlan) -> int:
    """Return how many decisions of one plan go otherwise in the other, or are not there."""
    decided = {(e.kind, e.key) for e in one.entries}
    return sum(one.wanted(*d)[0][0] != next(iter(other.wanted(*d)), (None,))[0] for d in decided)


def _calls(setting: Setting, plans: list[ExecutionPlan]) -> list[Calls]:
    model = _model(setting.model)
    return measure_calls(
        *([setting.compiled(plan) for plan in plans], model.args, model.kwargs),
        rounds=_ROUNDS,
        seconds=_SECONDS,
        symbols={},
    )


def _compiled(name: str, device: str, threads: int, plan: ExecutionPlan) -> CompiledModel:
    model = _model(name)
    options = {"device": device_here(device), "threads": threads, "plan": plan}
    with warnings.catch_warnings():
        # Of a plan for another device it is said how much of it applies.
        warnings.simplefilter("ignore", MetadefWarning)
        return metadef.compile(model.module, model.args, model.kwargs, **options)


def _model(name: str) -> Model:
    torch.manual_seed(0)
    return row(name).build()


def _keep_plan(setting: Setting) -> None:
    if setting.tuned is None:
        return
    _PLANS.mkdir(parents=True, exist_ok=True)
    plan = setting.tuned.plan
    # The lines of the model have paths of this machine.
    entries = tuple(replace(e, what=replace(e.what, lines=())) for e in plan.entries)
    path = _PLANS / f"{setting.model}.{setting.device}.{setting.threads}.json"
    save(replace(plan, entries=entries), path)


def table(records: list[dict[str, Any]], devices: list[str]) -> Table:
    """Return the time as each device has it over the time as the device itself has it."""
    shown = Table(title="time by the plan of each device, over the time by the device's own")
    names = ("model", "runs on", "default ms", "own/default")
    for name in (*names, *(f"plan of {device}" for device in devices)):
        shown.add_column(name, justify="left" if name in names[:2] else "right")
    for r in records:
        over = r["time_over_own"]
        ratios = (f"{over[d]:.3f} ({r['decided_otherwise'][d]} otherwise)" for d in devices)
        own = f"{r['time_over_default'][r['device']]:.3f}"
        shown.add_row(r["model"], r["device"], f"{r['default_ns'] / 1e6:.2f}", own, *ratios)
    return shown


if __name__ == "__main__":
    sys.exit(main())

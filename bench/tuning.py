#!/usr/bin/env python3
"""Tunes models on the devices that this machine can be, and runs each plan on each of them.

    bench/tuning.py --models resnet50_224,bert_12_layers --devices host,x86-64-v2 --budget 10m

A device is `host`, or a shipped one whose CPU code generation is kept to. After the searches each
model runs on each device by default and under the plan of every device, in turn: a plan should be
best where it was made. Plans go to bench/results/plans/, records to bench/results/tuning.jsonl.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from record import RESULTS, circumstances, keep
from rich.table import Table
from workloads import names_of, row

import metadef
from metadef.cli.console import progress_bar, stdout
from metadef.cli.models import Model
from metadef.cli.usage import count
from metadef.device.restrict import restricted
from metadef.device.shipped import shipped
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.plan.files import save
from metadef.plan.plan import ExecutionPlan
from metadef.runtime.host import this_device
from metadef.tuning.budget import parse_seconds
from metadef.tuning.calls import Calls, measure_calls, time_ratio
from metadef.tuning.result import Tuned

HOST = "host"
_ROUNDS, _SECONDS = 31, 4.0
_PLANS = RESULTS / "plans"


@dataclass(frozen=True)
class Setting:
    """A model on a device, with the plan that a search found there."""

    model: str
    device: str
    tuned: Tuned


def main() -> int:
    """Tune, compare; print the table, keep the records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--models", default="resnet50_224,mobilenet_v2_224,bert_12_layers", help="rows of bench")
    add("--devices", default=f"{HOST},intel-sandy-bridge,x86-64-v2", help="host, shipped devices")
    add("--threads", type=count, default=1, help="threads (1)")
    add("--budget", metavar="TIME", default="10m", help="of each search (10m)")
    add("--no-record", action="store_true", help="keep no plan and no record")
    args = parser.parse_args()
    devices = args.devices.split(",")
    where = circumstances()
    records: list[dict[str, Any]] = []
    try:
        budget = parse_seconds(args.budget)
        for name in names_of(args.models):
            found = [_tune(name, device, args.threads, budget) for device in devices]
            for record in _compare(found, args.threads):
                records.append(where | record | {"budget_s": budget})
                if not args.no_record:
                    keep("tuning", records[-1:])
            if not args.no_record:
                for setting in found:
                    _keep_plan(setting, args.threads)
    except MetadefError as error:
        print(f"bench/tuning.py: {error}", file=sys.stderr)
        return 1
    stdout().print(table(records, devices))
    return 0


def _tune(name: str, device: str, threads: int, budget: float) -> Setting:
    model = _model(name)
    title = f"{name} on {device}"
    with progress_bar(title) as tell:
        tuned = metadef.tune(
            *(model.module, model.args, model.kwargs),
            device=_spec(device),
            threads=threads,
            budget=budget,
            progress=lambda p: tell(p.layer, int(p.elapsed), int(p.seconds)),
        )
    return Setting(name, device, tuned)


def _compare(found: list[Setting], threads: int) -> list[dict[str, Any]]:
    """Run the model on each device, by default and under each plan."""
    records = []
    for setting in found:
        default, *others = _calls(setting, [None, *(s.tuned.plan for s in found)], threads)
        under = [s.device for s in found]
        records.append(
            {
                "model": setting.model,
                "device": setting.device,
                "threads": threads,
                "search_s": round(setting.tuned.seconds, 1),
                "trials": setting.tuned.trials,
                "gain_in_search": setting.tuned.gain,
                "default_ns": default.cost.latency_ns,
                "entries": [entry.kind for entry in setting.tuned.plan.entries],
                "kernels": [
                    {"name": k.name, "runs": k.runs, "ns": [k.default_ns, k.adapted_ns]}
                    for k in setting.tuned.kernels
                ],
                "time_over_default": {
                    name: time_ratio(default, calls)
                    for name, calls in zip(under, others, strict=True)
                },
            }
        )
    return records


def _calls(setting: Setting, plans: list[ExecutionPlan | None], threads: int) -> list[Calls]:
    model, spec = _model(setting.model), _spec(setting.device)
    compiled = [
        metadef.compile(
            *(model.module, model.args, model.kwargs), device=spec, threads=threads, plan=plan
        )
        for plan in plans
    ]
    return measure_calls(
        *(compiled, model.args, model.kwargs),
        rounds=_ROUNDS,
        seconds=_SECONDS,
        symbols={},
    )


def _model(name: str) -> Model:
    torch.manual_seed(0)
    return row(name).build()


def _spec(device: str) -> DeviceSpec:
    return this_device() if device == HOST else restricted(this_device(), shipped(device))


def _keep_plan(setting: Setting, threads: int) -> Path:
    _PLANS.mkdir(parents=True, exist_ok=True)
    path = _PLANS / f"{setting.model}.{setting.device}.{threads}.json"
    plan = setting.tuned.plan
    # The lines of the model have paths of this machine.
    entries = tuple(replace(e, what=replace(e.what, lines=())) for e in plan.entries)
    save(replace(plan, entries=entries), path)
    return path


def table(records: list[dict[str, Any]], devices: list[str]) -> Table:
    """Return the time under the plan of each device over the default's."""
    shown = Table(title="time over the default's, by the plan tuned on each device")
    for name in ("model", "runs on", "default ms", *(f"plan of {device}" for device in devices)):
        shown.add_column(name, justify="left" if name in ("model", "runs on") else "right")
    for r in records:
        ratios = (f"{r['time_over_default'][device]:.3f}" for device in devices)
        shown.add_row(r["model"], r["device"], f"{r['default_ns'] / 1e6:.2f}", *ratios)
    return shown


if __name__ == "__main__":
    sys.exit(main())

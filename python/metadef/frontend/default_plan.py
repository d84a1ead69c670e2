"""A compiled model's decisions said in full: a plan that a person can edit, a search start from."""

from __future__ import annotations

from metadef.device.spec import DeviceSpec
from metadef.plan.plan import SCHEDULE, Entry, ExecutionPlan

from .model_kernels import part_kernels
from .options import empty_plan
from .part import Part


def default_plan(parts: tuple[Part, ...], device: DeviceSpec, model: str) -> ExecutionPlan:
    """Return what was decided of a model that was compiled with a plan; schedules by the rules."""
    entries = [
        Entry(d.kind, d.key, d.chosen, "default", what=d.what)
        for part in parts
        for d in part.front.decisions
        if d.kind != SCHEDULE
    ]
    for part in parts:
        for kernel in part_kernels(part, device):
            choice = kernel.space().default.to_data()
            if choice:
                entries.append(Entry(SCHEDULE, kernel.key, choice, "default", what=kernel.what))
    distinct = {(e.kind, e.key): e for e in entries}
    made = empty_plan(device, model)
    return ExecutionPlan(made.model, made.device, made.compiler, tuple(distinct.values()))

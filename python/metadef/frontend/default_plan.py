"""A compiled model's decisions said in full: a plan that a person can edit, a search start from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from metadef import ir
from metadef.codegen.choices import ChoiceSpace, choice_space
from metadef.codegen.compile import KernelSource, dispatched_kernels, kernel_source, under_choice
from metadef.device.spec import DeviceSpec
from metadef.passes._structure import kernel_key
from metadef.plan.kernel_choice import KernelChoice
from metadef.plan.plan import SCHEDULE, Entry, ExecutionPlan, What

from .options import empty_plan
from .part import Part
from .planning import what_of_kernel


@dataclass(frozen=True)
class PlannableKernel:
    """A kernel that a call runs, as it is by default: its source for `codegen.compile`, structure
    key, what it is called, and how often a call runs kernels of this structure."""

    source: KernelSource
    key: str
    what: What
    runs: int

    def space(self) -> ChoiceSpace:
        """Return the choices for it."""
        return choice_space(self.source.text)

    def under(self, choice: KernelChoice) -> KernelSource:
        """Return its source under a choice."""
        return under_choice(self.source, choice)


def plannable_kernels(part: Part, device: DeviceSpec) -> list[PlannableKernel]:
    """Return the kernels that a call of a native part runs, those of one structure once."""
    used = Counter(step.kernel for step in part.front.plan.main.steps)
    found: dict[str, PlannableKernel] = {}
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(part.front.back)
        for function, noalias in dispatched_kernels(module):
            if function.name.value in used:
                key, what = kernel_key(function), what_of_kernel(function)
                runs = used[function.name.value]
                if key in found:
                    found[key] = replace(found[key], runs=found[key].runs + runs)
                    continue
                source = kernel_source(function, device, noalias)
                found[key] = PlannableKernel(source, key, what, runs)
    return list(found.values())


def default_plan(parts: tuple[Part, ...], device: DeviceSpec, model: str) -> ExecutionPlan:
    """Return what was decided of a model that was compiled with a plan; schedules by the rules."""
    entries = [
        Entry(d.kind, d.key, d.chosen, "default", what=d.what)
        for part in parts
        for d in part.front.decisions
        if d.kind != SCHEDULE
    ]
    for part in parts:
        for kernel in plannable_kernels(part, device):
            choice = kernel.space().default.to_data()
            if choice:
                entries.append(Entry(SCHEDULE, kernel.key, choice, "default", what=kernel.what))
    distinct = {(e.kind, e.key): e for e in entries}
    made = empty_plan(device, model)
    return ExecutionPlan(made.model, made.device, made.compiler, tuple(distinct.values()))

"""A plan on its way through a compilation: what front passes are told, and what they say."""

from __future__ import annotations

from collections.abc import Iterable

from metadef import ir
from metadef.passes._planned import decisions_of, set_plan
from metadef.plan.convolution import algorithm_choice, algorithm_text
from metadef.plan.decision import Decision
from metadef.plan.kernel_choice import KernelChoice, choice_from_data
from metadef.plan.plan import CONVOLUTION, SCHEDULE, ExecutionPlan, What

from .kernels import lines_of, summarize_kernel


def tell_front(module: ir.Module, plan: ExecutionPlan) -> None:
    """Say on a module what the plan wants of the front passes."""
    wanted = {
        key: [algorithm_text(choice) for choice, _ in plan.wanted(CONVOLUTION, key)]
        for key in plan.of_kind(CONVOLUTION)
    }
    with module.context, ir.Location.unknown():
        set_plan(module, {CONVOLUTION: wanted})


def tell_decided(module: ir.Module, decisions: Iterable[Decision]) -> None:
    """Say on a module what the front passes decided once, so that they do so again."""
    chosen = {d.key: [algorithm_text(d.chosen)] for d in decisions if d.kind == CONVOLUTION}
    if chosen:
        with module.context, ir.Location.unknown():
            set_plan(module, {CONVOLUTION: chosen})


def front_decisions(module: ir.Module, plan: ExecutionPlan) -> list[Decision]:
    """Return what the front passes decided, equal decisions once."""
    found: dict[tuple[str, str], Decision] = {}
    for noted in decisions_of(module.operation):
        kind, key, chosen, op, line = (
            str(noted[name]) for name in ("kind", "key", "chosen", "op", "line")
        )
        refused = list(noted["refused"])
        wanted = plan.wanted(kind, key)
        by = wanted[len(refused)][1] if len(refused) < len(wanted) else "default"
        lines = dict.fromkeys(lines_of(line) or [line])
        if (kind, key) in found:
            lines = dict.fromkeys((*found[kind, key].what.lines, *lines))
        what = What(ops=(op,), lines=tuple(lines), shapes=tuple(noted["shapes"]))
        reasons = zip((choice for choice, _ in wanted), refused, strict=False)
        found[kind, key] = Decision(kind, key, algorithm_choice(chosen), by, tuple(reasons), what)
    return list(found.values())


def chosen_schedules(decisions: Iterable[Decision]) -> dict[str, KernelChoice]:
    """Return the choices of kernels by name."""
    return {
        d.what.kernel: choice_from_data(d.chosen, "plan") for d in decisions if d.kind == SCHEDULE
    }


def what_of_kernel(function: ir.OpView) -> What:
    """Return what a kernel is called in the words of people."""
    with function.context, ir.Location.unknown():
        summary = summarize_kernel(function)
    return What(summary.name, summary.ops, summary.lines, (*summary.arguments, *summary.results))

"""A plan on its way through a compilation: what front passes are told, and what they say."""

from __future__ import annotations

from collections.abc import Iterable

from metadef import ir
from metadef.device.attribute import set_device
from metadef.device.spec import DeviceSpec
from metadef.pass_runner import PassRunner
from metadef.passes._planned import ERROR_LIMIT, decisions_of, set_plan
from metadef.pipelines import passes_of
from metadef.plan.decision import Decision
from metadef.plan.front_choices import FRONT_KINDS, choice_of_text, choice_text
from metadef.plan.kernel_choice import KernelChoice, choice_from_data
from metadef.plan.plan import SCHEDULE, ExecutionPlan, What

from .kernels import KernelSummary, lines_of, summarize_kernel


def tell_front(module: ir.Module, plan: ExecutionPlan, error_limit: float | None = None) -> None:
    """Say on a module what the plan wants of the front passes, and which error is allowed."""
    wanted = {
        kind: {
            key: [choice_text(kind, choice) for choice, _ in plan.wanted(kind, key)]
            for key in plan.of_kind(kind)
        }
        for kind in sorted(FRONT_KINDS)
    }
    with module.context, ir.Location.unknown():
        set_plan(module, wanted)
        if error_limit is not None:
            limit = ir.FloatAttr.get(ir.F64Type.get(), error_limit)
            module.operation.attributes[ERROR_LIMIT] = limit


def tell_decided(module: ir.Module, decisions: Iterable[Decision]) -> None:
    """Say on a module what the front passes decided once, so that they do so again."""
    chosen: dict[str, dict[str, list[str]]] = {}
    for made in decisions:
        if made.kind in FRONT_KINDS:
            text = choice_text(made.kind, made.chosen)
            chosen.setdefault(made.kind, {})[made.key] = [text]
    if chosen:
        with module.context, ir.Location.unknown():
            set_plan(module, chosen)


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
        what = What(ops=tuple(op.split()), lines=tuple(lines), shapes=tuple(noted["shapes"]))
        reasons = zip((choice for choice, _ in wanted), refused, strict=False)
        found[kind, key] = Decision(
            kind, key, choice_of_text(kind, chosen), by, tuple(reasons), what
        )
    return list(found.values())


def decided_under(
    plan: ExecutionPlan, source: str, spec: DeviceSpec, error_limit: float | None = None
) -> list[Decision]:
    """Return what the front passes decide of a native part under a plan; `source` is what was
    imported. No kernel is compiled.

    Raises:
        MetadefError: a pass failed.
    """
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(source)
    set_device(module, spec)
    tell_front(module, plan, error_limit)
    PassRunner(verify=False, keep_failures=False).run(module, passes_of("front"))
    return front_decisions(module, plan)


def chosen_schedules(decisions: Iterable[Decision]) -> dict[str, KernelChoice]:
    """Return the choices of kernels by name."""
    return {
        d.what.kernel: choice_from_data(d.chosen, "plan") for d in decisions if d.kind == SCHEDULE
    }


def what_of_kernel(function: ir.OpView) -> What:
    """Return what a kernel is called in the words of people."""
    with function.context, ir.Location.unknown():
        return what_of(summarize_kernel(function))


def what_of(summary: KernelSummary) -> What:
    """Return what a kernel is called in the words of people."""
    return What(summary.name, summary.ops, summary.lines, (*summary.arguments, *summary.results))

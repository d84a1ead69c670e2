"""Kernels under the choices of a plan: each is checked, tried alone, and else left to the rules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from metadef import ir
from metadef.codegen.compile import (
    KernelSource,
    OnKernel,
    Settings,
    compile_sources,
    dispatched_kernels,
    kernel_source,
)
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.trust import compare, remembered
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.passes._structure import kernel_key
from metadef.plan.decision import Decision
from metadef.plan.kernel_choice import choice_from_data
from metadef.plan.plan import SCHEDULE, Choice, ExecutionPlan, What
from metadef.runtime.cache import Cache

#: what a kernel's function is called in the words of people
Describe = Callable[[ir.OpView], What]


@dataclass(eq=False)
class _Planned:
    """A kernel and what is wanted of it: `wanted` has what was not yet refused."""

    function: ir.OpView
    claims_noalias: bool
    default: KernelSource
    key: str
    wanted: list[tuple[Choice, str]]
    refused: list[tuple[Choice, str]] = field(default_factory=list)
    chosen: CompiledKernel | None = None

    def source(self, spec: DeviceSpec) -> KernelSource:
        """Return the kernel under the first choice that was not refused, or the default."""
        if not self.wanted:
            return self.default
        choice = choice_from_data(self.wanted[0][0], "plan")
        return kernel_source(self.function, spec, self.claims_noalias, choice)

    def refuse(self, reason: str) -> None:
        """Go on to the next choice."""
        choice, _ = self.wanted.pop(0)
        self.refused.append((choice, reason))

    def decision(self, describe: Describe) -> Decision:
        """Return what became of it."""
        choice, by = self.wanted[0] if self.wanted else ({}, "default")
        refused = tuple(self.refused)
        return Decision(SCHEDULE, self.key, choice, by, refused, describe(self.function))


def compile_planned(
    module: ir.Module,
    spec: DeviceSpec,
    plan: ExecutionPlan,
    describe: Describe,
    *,
    cache: Cache,
    jobs: int,
    on_kernel: OnKernel,
    meanwhile: Callable[[], object],
) -> tuple[dict[str, CompiledKernel], list[Decision]]:
    """Return the compiled kernels of a back graph by name, and the decision of each.

    A choice is taken if the compiler takes it, and if the kernel alone computes with it what it
    computes by default; else the next one that the plan has for the kernel is, at last the default.

    Raises:
        MetadefError: a kernel cannot be compiled by default.
    """
    settings = Settings(cache, jobs, on_kernel, keep_failures=True)
    chosen_settings = replace(settings, keep_failures=False)
    quiet = replace(settings, report=lambda name, cached: None)
    kernels = []
    for function, noalias in dispatched_kernels(module):
        default = kernel_source(function, spec, noalias)
        with function.context, ir.Location.unknown():
            key = kernel_key(function)
        kernels.append(_Planned(function, noalias, default, key, plan.wanted(SCHEDULE, key)))
    pending = [k for k in kernels if k.wanted]
    while pending:
        failures: dict[str, MetadefError] = {}
        sources = {k.default.name: k.source(spec) for k in pending}
        found = compile_sources(sources.values(), chosen_settings, failures=failures)
        # Those that were not compared yet are compiled by default, too, all of them at once.
        new = [
            k.default
            for k in pending
            if (s := sources[k.default.name]).key in found
            and remembered(cache, s.key, k.default.key) is None
        ]
        defaults = compile_sources(new, quiet)
        for kernel in pending:
            source = sources[kernel.default.name]
            if source.key in failures:
                kernel.refuse(_reason(failures[source.key]))
                continue
            chosen = replace(found[source.key], name=source.name, key=source.key)
            problem = remembered(cache, source.key, kernel.default.key)
            if problem is None:
                by_rule = replace(defaults[kernel.default.key], key=kernel.default.key)
                with kernel.function.context:
                    problem = compare(kernel.function, chosen, by_rule, spec, cache)
            if problem:
                kernel.refuse(problem)
            else:
                kernel.chosen = chosen
        pending = [k for k in pending if k.chosen is None and k.wanted]
    by_default = [k.default for k in kernels if k.chosen is None]
    compiled = compile_sources(by_default, settings, meanwhile)
    result = {
        k.default.name: k.chosen
        or replace(compiled[k.default.key], name=k.default.name, key=k.default.key)
        for k in kernels
    }
    return result, [kernel.decision(describe) for kernel in kernels]


def _reason(error: MetadefError) -> str:
    """Return what is wrong with a choice, without what leads up to it."""
    first = str(error).splitlines()[0]
    return first[first.find("field '") :].split("; from ")[0] if "field '" in first else first

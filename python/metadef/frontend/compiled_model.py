"""A compiled model: checks a call, runs it, and puts the result into the model's own pytree."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

import torch
from torch.utils import _pytree as pytree

from metadef.codegen.workers import WORKERS
from metadef.device.restrict import check_runs
from metadef.diagnostics import MetadefError, near_names
from metadef.profiling.spans import Round
from metadef.runtime.host import this_device

from .ahead import Ahead
from .interface import Interface, as_call
from .kept_model import (
    KeptModel,
    find_model,
    keep_model,
    looks_key,
    record_ops,
    trace_model,
)
from .native import NativeGraph, Results
from .options import Options
from .part import CompiledGraph, Part, load_kept, model_key_of, plan_of, tell_stages
from .plan_warnings import warn_of_plan
from .report import Progress, Report, Timeline
from .signature import Signature

if TYPE_CHECKING:
    from metadef.plan.decision import Decision
    from metadef.plan.plan import ExecutionPlan
    from metadef.profiling.profile import Profile

    from .kernels import KernelSummary
    from .model_kernels import ModelKernel

#: calls before a profile's own
_WARM_UP = 3


class CompiledModel:
    """A model compiled by `metadef.compile`; call it like the model."""

    def __init__(
        self, interface: Interface, compiled: CompiledGraph, report: Report, options: Options
    ) -> None:
        self._signature = Signature(
            interface.in_spec,
            interface.examples,
            interface.symbols,
            interface.parameters,
            interface.layouts,
            interface.untraced,
            dense=isinstance(compiled.run, NativeGraph),
        )
        self._run = compiled.run
        self._results = Results(interface.outputs, interface.mutations, interface.weights)
        self._unflatten = _unflattener(interface.out_spec)
        self._parts = compiled.parts
        self._report = report
        self._options = options

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model.

        Raises:
            InputError: an argument differs from what the model was compiled for.
        """
        given, leaves, symbols = self._signature.bind(args, kwargs)
        values = self._run(leaves, symbols)
        return self._unflatten(self._results.collect(values, given, symbols))

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Refuse to be pickled or copied.

        Raises:
            MetadefError: always.
        """
        raise MetadefError(
            "a compiled model cannot be pickled or copied: its code is in this process's memory; "
            "keep the model, and compile it again, which the compile cache makes quick"
        )

    def report(self) -> Report:
        """Return what the compilation did; `print` shows it as a table."""
        return self._report

    def mlir(self, stage: str = "import", kernel: str | None = None) -> str:
        """Return the IR after a stage, with the lines of the model as locations.

        The stages are `import` (the torch dialect), the passes of the front end, then for all
        kernels in one text the passes that each goes through, `llvm-ir` (what LLVM is given) and
        `assembly`. All but the first is made again now, as nobody keeps it. With the name of a
        `kernel`, its text alone.

        Raises:
            MetadefError: no such stage, no such kernel, or no stage of a kernel.
        """
        from .stages import join_texts, stage_text

        names = [summary.name for summary in self.kernels]
        if kernel is not None and kernel not in names:
            near = near_names(kernel, names) or f"; the kernels are {', '.join(names)}"
            raise MetadefError(f"no kernel '{kernel}'{near}")
        texts = (
            stage_text(
                part.name,
                part.front.source,
                stage,
                self._options.device,
                kernel,
                part.front.decisions,
            )
            for part in self._parts
        )
        return join_texts(filter(None, texts), stage)

    @property
    def kernels(self) -> tuple[KernelSummary, ...]:
        """What each kernel does; a call runs some of them often, and those of @init never.

        Where torch runs some of the ops, the name of a kernel starts with that of its native part.
        """
        return tuple(
            replace(summary, name=part.prefix + summary.name)
            for part in self._parts
            for summary in part.summaries
        )

    def profile(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any] | None = None,
        *,
        rounds: int = 20,
        against_limits: bool = True,
        measure_again: bool = False,
        progress: Progress | None = None,
    ) -> Profile:
        """Run the model `rounds` times with the clock on; return where the time of a call goes.

        What the model writes to is not written. The device's limits come from the cache or are
        measured, which takes some seconds; `measure_again` does that in any case, and without
        `against_limits` nobody asks for them. `progress(stage, done, total)` is called as it goes.

        Raises:
            InputError: an argument differs from what the model was compiled for.
            MetadefError: `rounds` is not a number of rounds.
        """
        from metadef.measure.limits import device_limits
        from metadef.profiling.assemble import make_profile

        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise MetadefError(f"rounds: expected an int of at least 1, got {rounds!r}")
        tell = progress or (lambda stage, done, total: None)
        options = self._options
        _, leaves, symbols = self._signature.bind(args, dict(kwargs or {}))
        limits = None
        if against_limits:
            limits = device_limits(
                options.device,
                options.threads,
                options.cache,
                again=measure_again,
                progress=lambda what, done, total: tell(f"measure {what}", done, total),
            )
        timed, untimed = [], []
        for done in range(_WARM_UP + rounds):
            start = time.monotonic_ns()
            self._run(leaves, symbols)
            untimed.append(time.monotonic_ns() - start)
            start = time.monotonic_ns()
            _, spans = self._run.timed(leaves, symbols)
            timed.append(Round(start, time.monotonic_ns(), tuple(spans)))
            tell("profile", done + 1, _WARM_UP + rounds)
        return make_profile(
            timed[_WARM_UP:],
            untimed[_WARM_UP:],
            self._parts,
            symbols,
            options.threads,
            options.device,
            limits,
        )

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """What was decided where a plan could have a say; of a model compiled without one, none."""
        return tuple(decision for part in self._parts for decision in part.front.decisions)

    def decisions_under(self, plan: ExecutionPlan) -> tuple[Decision, ...]:
        """Return what the front passes would decide under another plan, which is much quicker than
        to compile the model with it: the decisions of all kinds but kernels' schedules.

        Raises:
            MetadefError: a pass failed.
        """
        from .planning import decided_under

        options = self._options
        return tuple(
            decision
            for part in self._parts
            for decision in decided_under(
                plan, part.front.source, options.device, options.error_limit
            )
        )

    def default_plan(self) -> ExecutionPlan:
        """Return what the compiler decides of this model by itself, said in full.

        Raises:
            MetadefError: it was compiled without a plan, and so without notes; an empty one will do
                (`frontend.options.empty_plan`).
        """
        from .default_plan import default_plan

        if self._options.plan is None:
            raise MetadefError(
                "default_plan: expected a model compiled with a plan, which may be empty, got one "
                "compiled without; pass plan=empty_plan(device)"
            )
        return default_plan(self._parts, self._options.device, self.model_key)

    def plannable_kernels(self) -> list[ModelKernel]:
        """Return the kernels that a call runs, for a search: each with the choices for it."""
        from .model_kernels import part_kernels

        return [k for part in self._parts for k in part_kernels(part, self._options.device)]

    @property
    def model_key(self) -> str:
        """What a plan calls this model; '' for one compiled without a plan."""
        return model_key_of(self._parts)

    @property
    def plan(self) -> dict[str, Any]:
        """The execution plan as plain data: the kernels with their keys, and the dispatches."""
        return plan_of(self._parts)


def compile_model(
    module: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
    options: Options,
    progress: Progress | None,
) -> CompiledModel:
    """Export and compile a model.

    Raises:
        MetadefError: the model cannot be exported or compiled.
    """
    check_runs(options.device, this_device())
    timeline = Timeline(progress)
    args, kwargs = as_call(args, kwargs)
    with _no_garbage_collection():
        interface, compiled = _compile(module, args, kwargs, dynamic_shapes, options, timeline)
    report = compiled.report(timeline, interface.weights, options)
    warn_of_plan(report.plan)
    return CompiledModel(interface, compiled, report, options)


def _compile(
    module: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
    options: Options,
    timeline: Timeline,
) -> tuple[Interface, CompiledGraph]:
    looks = None
    if isinstance(module, torch.nn.Module) and not options.printing.is_on:
        looks = looks_key(
            *(module, args, kwargs, dynamic_shapes),
            *(options.device, options.plan, options.error_limit),
        )
    kept = find_model(options.cache, looks)
    ahead = None
    if kept is not None:
        ahead = Ahead(kept.graph, kept.weights(module), partial(load_kept, options=options))
        found = _compile_traced(module, args, kwargs, kept, ahead, timeline)
        if found is not None:
            return found
    if looks is not None and kept is None:
        WORKERS.start(options.jobs)  # they load while the model is exported
    from .compiler import compile_graph  # from here on it takes MLIR
    from .export import export

    with timeline.stage("export"):
        exported = export(module, args, kwargs, dynamic_shapes)
    timeline.add("export", 0.0, exported.nodes)
    trace = cache(partial(record_ops, module, args, kwargs, exported))
    meanwhile = trace if looks is not None and kept is None else _nothing
    compiled = compile_graph(exported.graph, options, timeline, ahead, meanwhile)
    if looks is not None and compiled.key is not None and isinstance(compiled.run, NativeGraph):
        untraced = KeptModel(compiled.key, None)
        if kept != untraced:
            with timeline.stage("trace"):
                traced = trace_model(module, exported, compiled.run, trace())
            keep_model(options.cache, looks, KeptModel(compiled.key, traced))
    return exported.interface(), compiled


def _compile_traced(
    module: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    kept: KeptModel,
    ahead: Ahead[Part],
    timeline: Timeline,
) -> tuple[Interface, CompiledGraph] | None:
    """Return the kept model if `module` does what its trace says, else None."""
    if kept.traced is None:
        return None
    with timeline.stage("replay"):
        interface = kept.traced.interface(module, args, kwargs)
    if interface is None:
        return None
    with timeline.stage("look up"):
        part = ahead.take(kept.graph, interface.weights)
    if part is None:
        return None
    timeline.add("export", 0.0, kept.traced.nodes)
    tell_stages(part, timeline)
    run = NativeGraph(part.program, kept.traced.inputs, kept.traced.copies, interface.weights)
    return interface, CompiledGraph(run, (part,), ())


def _nothing() -> None:
    """Do nothing while kernels are compiled."""


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Put the collector off: tracing makes many objects, and each time it would look at them all.

    That took a sixth of the time of a compilation.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _unflattener(spec: pytree.TreeSpec) -> Callable[[list[Any]], Any]:
    """Return the function from the result's leaves to the result."""
    if spec.is_leaf():
        return lambda leaves: leaves[0]
    if spec.type in (tuple, list) and all(
        spec.child(i).is_leaf() for i in range(spec.num_children)
    ):
        return spec.type
    return lambda leaves: pytree.tree_unflatten(leaves, spec)

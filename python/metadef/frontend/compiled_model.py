"""A compiled model: checks a call, runs it, and puts the result into the model's own pytree."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

from torch.utils import _pytree as pytree

from metadef.diagnostics import MetadefError, near_names
from metadef.profiling.spans import Round

from .ahead import guess_key, keep_guess, start
from .compiler import (
    CompiledGraph,
    Options,
    compile_graph,
    load_kept,
    plan_of,
)
from .export import Exported, export
from .kernels import KernelSummary
from .native import NativeGraph, Results
from .report import Progress, Report, Timeline
from .signature import Signature
from .stages import join_texts, stage_text
from .untraced_sizes import UntracedSizes

if TYPE_CHECKING:
    from metadef.profiling.profile import Profile

#: calls before a profile's own
_WARM_UP = 3


class CompiledModel:
    """A model compiled by `metadef.compile`; call it like the model."""

    def __init__(
        self, exported: Exported, compiled: CompiledGraph, report: Report, options: Options
    ) -> None:
        graph = exported.graph
        self._signature = Signature(
            exported.in_spec,
            exported.examples,
            graph.symbols,
            exported.parameters,
            graph.layouts,
            UntracedSizes(graph.module, graph.symbols) if graph.symbols.ranges() else None,
            dense=isinstance(compiled.run, NativeGraph),
        )
        self._run = compiled.run
        self._results = Results(graph.outputs, graph.mutations, graph.weights)
        self._unflatten = _unflattener(exported.out_spec)
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
        names = [summary.name for summary in self.kernels]
        if kernel is not None and kernel not in names:
            near = near_names(kernel, names) or f"; the kernels are {', '.join(names)}"
            raise MetadefError(f"no kernel '{kernel}'{near}")
        texts = (
            stage_text(part.name, part.front.source, stage, self._options.device, kernel)
            for part in self._parts
        )
        return join_texts(filter(None, texts), stage)

    @property
    def kernels(self) -> tuple[KernelSummary, ...]:
        """What each kernel does; a call runs some of them often, and those of @init never.

        Where torch runs some of the ops, the name of a kernel starts with that of its native part.
        """
        if isinstance(self._run, NativeGraph):
            return self._parts[0].summaries
        return tuple(
            replace(summary, name=f"{part.name}.{summary.name}")
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
    timeline = Timeline(progress)
    guess = guess_key(module, args, kwargs, dynamic_shapes, options.device)
    with _no_garbage_collection():
        ahead = start(options.cache, guess, module, partial(load_kept, options=options))
        with timeline.stage("export"):
            exported = export(module, args, kwargs, dynamic_shapes)
        timeline.add("export", 0.0, _count_calls(exported))
        compiled = compile_graph(exported.graph, options, timeline, ahead)
        keep_guess(options.cache, guess, ahead, compiled.key)
    return CompiledModel(exported, compiled, compiled.report(timeline, exported.graph), options)


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


def _count_calls(exported: Exported) -> int:
    return sum(node.op == "call_function" for node in exported.graph.module.graph.nodes)


def _unflattener(spec: pytree.TreeSpec) -> Callable[[list[Any]], Any]:
    """Return the function from the result's leaves to the result."""
    if spec.is_leaf():
        return lambda leaves: leaves[0]
    if spec.type in (tuple, list) and all(
        spec.child(i).is_leaf() for i in range(spec.num_children)
    ):
        return spec.type
    return lambda leaves: pytree.tree_unflatten(leaves, spec)

"""From a captured graph to something that runs: verdicts, partition, passes, kernels, program."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import fx

from metadef import ir
from metadef.codegen.compile import compile_kernels, kept_kernels, warm_up
from metadef.codegen.kernel import CompiledKernel
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.instrumentation import ALL, Printing
from metadef.pass_runner import PassRunner, Step
from metadef.pipelines import passes_of
from metadef.runtime.back_graph import Input, Weight
from metadef.runtime.cache import Cache, default_cache
from metadef.runtime.program import Program, build_program

from .ahead import Ahead
from .capture import Capture
from .graph_cache import Front, find_front, graph_key, keep_front
from .importer import import_graph
from .kernels import KernelSummary, summarize_kernels
from .native import Graph, MixedGraph, NativeGraph, NativePart
from .partition import partition, report_fallbacks
from .report import Memory, Report, Timeline
from .stages import print_kernels, set_device, stage_names
from .support import Support, Verdict
from .weights import WeightStore

#: OpenMP ends the process when it cannot start a thread
_MOST_THREADS = 256


@dataclass(frozen=True)
class Options:
    """How to compile: for which device, with how many threads, and what to show meanwhile."""

    device: DeviceSpec
    threads: int
    cache: Cache
    fallback: str = "eager"
    printing: Printing = field(default_factory=Printing)
    jobs: int = 2


@dataclass(frozen=True)
class Part:
    """One native part: what the front passes made of it, and what came out."""

    name: str
    key: str | None
    front: Front
    program: Program
    kernels: Mapping[str, CompiledKernel]
    cached: int

    @cached_property
    def summaries(self) -> tuple[KernelSummary, ...]:
        """What each kernel is, read from the back graph when somebody asks."""
        return summarize_kernels(_parsed(self.front.back))

    @property
    def shared(self) -> list[int]:
        """The values whose memory is an input's or a weight's."""
        results = self.program.graph.results
        return [i for i, (buffer, _) in enumerate(results) if isinstance(buffer, Input | Weight)]


@dataclass(frozen=True)
class CompiledGraph:
    """A graph ready to run on the flat leaves of a call."""

    run: Graph
    parts: tuple[Part, ...]
    fallbacks: tuple[Verdict, ...]

    @property
    def key(self) -> str | None:
        """The key under which the whole graph's front is kept; None where torch runs some ops."""
        return self.parts[0].key if isinstance(self.run, NativeGraph) else None

    def report(self, timeline: Timeline, weights: WeightStore) -> Report:
        """Return what the compilation did."""
        uses = [part.program.bytes for part in self.parts]
        keys = {kernel.symbol for part in self.parts for kernel in part.kernels.values()}
        return Report(
            stages=tuple(timeline.stages),
            parts=len(self.parts),
            dispatches=sum(len(part.program.graph.steps) for part in self.parts),
            kernels=len(keys),
            kernels_from_cache=sum(part.cached for part in self.parts),
            memory=tuple(
                Memory(str(u.arena_before), str(u.arena), str(u.scratch), u.constants) for u in uses
            ),
            fallbacks=self.fallbacks,
            copied_weights=tuple(sorted(weights.copied)),
        )


def compile_graph(
    capture: Capture, options: Options, timeline: Timeline, ahead: Ahead[Part] | None = None
) -> CompiledGraph:
    """Compile a captured graph; what nobody can lower is left to torch, with one warning.

    `ahead` may hold the program already.

    Raises:
        UnsupportedOpError: `options.fallback` is "error" and torch would have to run an op.
        MetadefError: a pass or a kernel failed.
    """
    part = _kept_part(capture, "main", options, timeline, ahead)
    if part is not None:
        return CompiledGraph(NativeGraph.of(capture, part.program, part.shared), (part,), ())
    warm_up(options.jobs)
    support = Support(capture.symbols, lambda module: _why_not(module, options))
    with timeline.stage("check"):
        verdicts = support.verdicts(capture.module.graph)
    try:
        return _compile(capture, verdicts, options, timeline)
    except MetadefError as error:
        if options.fallback == "error":
            raise
        with timeline.stage("check each op"):
            exact = support.verdicts(capture.module.graph, to_object_code=True)
        failing = [n for n, v in exact.items() if v.kind == "eager" != verdicts[n].kind]
        if not failing or not any(v.kind in ("native", "linalg") for v in exact.values()):
            raise  # the ops alone compile, or none does: it is not an op that is at fault
        del error
        return _compile(capture, exact, options, timeline)


def check_graph(capture: Capture, options: Options) -> dict[fx.Node, Verdict]:
    """Return the verdict of each op of the graph."""
    return Support(capture.symbols, lambda module: _why_not(module, options)).verdicts(
        capture.module.graph
    )


def _compile(
    capture: Capture, verdicts: Mapping[fx.Node, Verdict], options: Options, timeline: Timeline
) -> CompiledGraph:
    fallbacks = tuple(v for v in verdicts.values() if v.kind == "eager")
    if all(v.kind in ("native", "linalg") for v in verdicts.values()):
        if not verdicts:
            return CompiledGraph(MixedGraph(capture), (), ())
        part = _build(capture, "main", options, timeline)
        return CompiledGraph(NativeGraph.of(capture, part.program, part.shared), (part,), ())
    report_fallbacks(verdicts.values(), options.fallback)
    mixed, captures = partition(capture, verdicts)
    parts = []
    for name, inner in captures.items():
        part = _kept_part(inner, name, options, timeline) or _build(inner, name, options, timeline)
        parts.append(part)
        mixed.module.add_module(name, NativePart(inner, part.program, part.shared))
    return CompiledGraph(MixedGraph(mixed), tuple(parts), fallbacks)


def _build(capture: Capture, name: str, options: Options, timeline: Timeline) -> Part:
    """Compile one native graph to a program, and keep what the front passes made of it."""
    key = _front_key(capture, options)
    with timeline.stage("import"):
        module = import_graph(capture.module, capture.source_of, capture.symbols)
        source = module.operation.get_asm(enable_debug_info=True, assume_verified=True)
    nodes = [("import", count_nodes(module))]
    timeline.add("import", 0.0, nodes[0][1])
    printing = _printing_of(name, options.printing)
    nodes += _run_front(module, options, printing, timeline)
    if printing.is_on:
        print_kernels(module, options.device, printing)
    back = module.operation.get_asm(enable_debug_info=True, assume_verified=True)
    front = Front(source, back, tuple(nodes))
    part = _back(capture.weights, name, key, front, module, options, timeline)
    keys = {kernel.name: kernel.key for kernel in part.kernels.values()}
    keep_front(options.cache, key, replace(front, kernels=keys))
    return part


def _kept_part(
    capture: Capture,
    name: str,
    options: Options,
    timeline: Timeline,
    ahead: Ahead[Part] | None = None,
) -> Part | None:
    """Return the program of a graph that was compiled before; its stages take no time now."""
    key = _front_key(capture, options)
    with timeline.stage("look up"):
        part = ahead.take(key, capture.weights) if ahead is not None else None
    if part is None:
        with timeline.stage("look up"):
            front = find_front(options.cache, key)
            module = _parsed(front.back) if front is not None else None
        if front is None or module is None:
            return None
        part = _back(capture.weights, name, key, front, module, options, timeline)
    tell_stages(part, timeline)
    return part


def tell_stages(part: Part, timeline: Timeline) -> None:
    """Add the stages of a part that was kept, with its nodes; they took no time now."""
    for stage in ("kernels", "program"):
        timeline.add(stage, 0.0)
    for stage, nodes in part.front.nodes:
        timeline.add(stage, 0.0, nodes)


def load_kept(key: str, weights: Mapping[str, torch.Tensor], options: Options) -> Part | None:
    """Return the program of the whole graph that is kept under `key`."""
    front = find_front(options.cache, key)
    if front is None:
        return None
    module = _parsed(front.back)
    return _back(weights, "main", key, front, module, options, Timeline(None))


def _front_key(capture: Capture, options: Options) -> str | None:
    return None if options.printing.is_on else graph_key(capture, options.device)


def _parsed(text: str) -> ir.Module:
    context = ir.make_context()
    with context, ir.Location.unknown():
        return ir.Module.parse(text)


def _back(
    weights: Mapping[str, torch.Tensor],
    name: str,
    key: str | None,
    front: Front,
    module: ir.Module,
    options: Options,
    timeline: Timeline,
) -> Part:
    """Compile the kernels of a planned back graph; load them with its weights."""
    cached = 0
    done = 0

    def note(kernel: str, from_cache: bool) -> None:
        nonlocal cached, done
        done += 1
        cached += from_cache
        timeline.tell("kernels", done, max(done, total))

    total = _count_kernels(module)
    with timeline.stage("kernels"):
        kernels = kept_kernels(front.kernels, options.cache) if front.kernels else None
        for kernel in kernels or {}:
            note(kernel, True)
        if kernels is None:
            kernels = compile_kernels(
                module, options.device, cache=options.cache, jobs=options.jobs, on_kernel=note
            )
    with timeline.stage("program"):
        program = build_program(module, kernels, weights, options.threads)
    return Part(name, key, front, program, kernels, cached)


def _printing_of(part: str, printing: Printing) -> Printing:
    """Return how to print a part: where torch runs some of the ops, each part has a folder."""
    if part == "main" or printing.ir_dir is None:
        return printing
    return replace(printing, ir_dir=printing.ir_dir / part)


def _run_front(
    module: ir.Module, options: Options, printing: Printing, timeline: Timeline
) -> list[tuple[str, int]]:
    """Run the front passes; return the nodes after each."""
    counts: list[tuple[str, int]] = []
    steps = passes_of("front")
    names = stage_names(steps)
    last = time.perf_counter()
    done = 0

    def note(step: Step, root: ir.Operation) -> None:
        nonlocal last, done
        counts.append((names[done], count_nodes(module)))
        timeline.add(names[done], time.perf_counter() - last, counts[-1][1])
        done += 1
        timeline.tell(step.name(), done, len(steps))
        last = time.perf_counter()

    set_device(module, options.device)
    PassRunner(printing=printing, on_stage=note).run(module, steps)
    return counts


def _why_not(module: ir.Module, options: Options) -> str | None:
    """Bring a module of one converted op down to object code; return None, or why that failed."""
    try:
        set_device(module, options.device)
        PassRunner(keep_failures=False).run(module, passes_of("front")[1:])
        compile_kernels(module, options.device, cache=options.cache, jobs=1, keep_failures=False)
    except MetadefError as error:
        return str(error).splitlines()[0]
    return None


#: ops that are there for the form's sake
_FORM = ("func.", "builtin.", "torch.constant.", "metadef.yield", "torch.prim.ListConstruct")


def count_nodes(module: ir.Module) -> int:
    """Return the number of ops of @main that compute something, with those inside its kernels."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    main = [f for f in functions if ir.StringAttr(f.attributes["sym_name"]).value == "main"]
    return sum(not op.operation.name.startswith(_FORM) for f in main for op in ir.operations(f))


def _count_kernels(module: ir.Module) -> int:
    return sum("metadef.kernel" in op.attributes for op in module.body.operations)


def plan_of(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the plan as plain data: each part's kernels with keys, and its dispatches."""
    return {
        "version": 1,
        "parts": [
            {
                "name": part.name,
                "kernels": {name: {"key": k.symbol} for name, k in sorted(part.kernels.items())},
                "dispatches": [step.kernel for step in part.program.graph.steps],
            }
            for part in parts
        ],
    }


def default_options(
    *,
    device: DeviceSpec | str | Path | None = None,
    threads: int | None = None,
    fallback: str = "eager",
    print_ir_after_all: bool = False,
    ir_dir: Path | None = None,
) -> Options:
    """Return options with this machine's device, torch's number of threads, and the cache on disk.

    Raises:
        MetadefError: an option has no such value, or the device's file cannot be read.
    """
    if fallback not in ("eager", "error"):
        raise MetadefError(f"fallback: expected 'eager' or 'error', got {fallback!r}")
    if threads is not None:
        _check_threads(threads)
    after = ALL if print_ir_after_all else frozenset[str]()
    return Options(
        device=_device(device),
        threads=threads or max(1, torch.get_num_threads()),
        cache=default_cache(),
        fallback=fallback,
        printing=Printing(after=after, ir_dir=ir_dir),
        jobs=max(1, min(8, os.cpu_count() or 1)),
    )


def _check_threads(threads: int) -> None:
    if isinstance(threads, bool) or not isinstance(threads, int):
        raise MetadefError(f"threads: expected an int, got {type(threads).__name__}")
    most = max(_MOST_THREADS, os.cpu_count() or 1)
    if not 1 <= threads <= most:
        wanted = "at least 1" if threads < 1 else f"at most {most}"
        raise MetadefError(f"threads: expected {wanted}, got {threads}")


def _device(device: DeviceSpec | str | Path | None) -> DeviceSpec:
    from metadef.device.descriptor import load
    from metadef.device.probe import probe

    if device is None:
        return probe()
    if isinstance(device, DeviceSpec):
        return device
    if not isinstance(device, str | Path):
        raise MetadefError(
            "device: expected a DeviceSpec or the path of a descriptor, "
            f"got {type(device).__name__}"
        )
    return load(Path(device))

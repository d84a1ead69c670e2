"""From a captured graph to something that runs: verdicts, partition, passes, kernels, program."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from torch import fx

from metadef import ir
from metadef.allocator import give_back_memory
from metadef.codegen.compile import compile_kernels, warm_up
from metadef.codegen.kernel import CompiledKernel
from metadef.codegen.planned import compile_planned
from metadef.codegen.workers import WORKERS
from metadef.device.attribute import set_device
from metadef.diagnostics import MetadefError
from metadef.instrumentation import Printing
from metadef.pass_runner import PassRunner, Step
from metadef.pipelines import passes_of, stage_names
from metadef.plan.decision import Decision
from metadef.runtime.back_graph_reader import read_plan
from metadef.runtime.jit import dispatch_loop
from metadef.runtime.program import build_program
from metadef.upstream import forget_managers

from .ahead import Ahead
from .capture import Capture
from .graph_cache import (
    Front,
    compress_texts,
    find_front,
    graph_key,
    keep_front,
    model_key,
)
from .importer import import_graph
from .native import MixedGraph, NativeGraph, NativePart
from .options import Options
from .part import CompiledGraph, Part, load_part, tell_stages
from .partition import partition, report_fallbacks
from .planning import front_decisions, tell_front, what_of_kernel
from .report import Timeline
from .support import Support
from .verdict import Verdict

#: the second copy of so many bytes, which packing makes, wants the room that idle workers take;
#: starting them again for another model takes a second or less
_LARGE_WEIGHTS = 64 << 20


def compile_graph(
    capture: Capture,
    options: Options,
    timeline: Timeline,
    ahead: Ahead[Part] | None = None,
    meanwhile: Callable[[], object] = lambda: None,
) -> CompiledGraph:
    """Compile a captured graph; what nobody can lower is left to torch, with one warning.

    `ahead` may hold the program already. `meanwhile` is called while the kernels of a graph that is
    native as a whole are being compiled.

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
        return _compile(capture, verdicts, options, timeline, meanwhile)
    except MetadefError as error:
        if options.fallback == "error":
            raise
        with timeline.stage("check each op"):
            exact = support.verdicts(capture.module.graph, to_object_code=True)
        failing = [n for n, v in exact.items() if v.kind == "eager" != verdicts[n].kind]
        if not failing or not any(v.kind in ("native", "linalg") for v in exact.values()):
            raise  # the ops alone compile, or none does: it is not an op that is at fault
        del error
        return _compile(capture, exact, options, timeline, meanwhile)


def check_graph(capture: Capture, options: Options) -> dict[fx.Node, Verdict]:
    """Return the verdict of each op of the graph."""
    return Support(capture.symbols, lambda module: _why_not(module, options)).verdicts(
        capture.module.graph
    )


def _compile(
    capture: Capture,
    verdicts: Mapping[fx.Node, Verdict],
    options: Options,
    timeline: Timeline,
    meanwhile: Callable[[], object],
) -> CompiledGraph:
    fallbacks = tuple(v for v in verdicts.values() if v.kind == "eager")
    if all(v.kind in ("native", "linalg") for v in verdicts.values()):
        if not verdicts:
            return CompiledGraph(MixedGraph(capture), (), ())
        part = _build(capture, "main", options, timeline, meanwhile)
        return CompiledGraph(NativeGraph.of(capture, part.program, part.shared), (part,), ())
    report_fallbacks(verdicts.values(), options.fallback)
    mixed, captures = partition(capture, verdicts)
    parts = []
    for name, inner in captures.items():
        part = _kept_part(inner, name, options, timeline) or _build(inner, name, options, timeline)
        parts.append(part)
        mixed.module.add_module(name, NativePart(inner, part.program, part.shared))
    return CompiledGraph(MixedGraph(mixed), tuple(parts), fallbacks)


def _build(
    capture: Capture,
    name: str,
    options: Options,
    timeline: Timeline,
    meanwhile: Callable[[], object] = lambda: None,
) -> Part:
    """Compile one native graph to a program, and keep what the front passes made of it."""
    with timeline.stage("import"):
        module = import_graph(capture.module, capture.source_of, capture.symbols)
        source = module.operation.get_asm(enable_debug_info=True, assume_verified=True)
    nodes = [("import", count_nodes(module))]
    timeline.add("import", 0.0, nodes[0][1])
    printing = _printing_of(name, options.printing)
    nodes += _run_front(module, options, printing, timeline)
    if printing.is_on:
        from .stages import print_kernels  # brings in LLVM

        print_kernels(module, options.device, printing)
    back = module.operation.get_asm(enable_debug_info=True, assume_verified=True)
    front = Front(read_plan(module), tuple(nodes), compress_texts(source, back))
    if options.plan is not None:
        front = replace(front, model_key=model_key(capture))
    kernels, cached, decisions = _compile_kernels(module, options, timeline, meanwhile)
    front = replace(front, decisions=decisions)
    del module, source, back  # room for the weights that the program makes
    return _load_new(capture, name, front, kernels, cached, options, timeline)


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
        front = find_front(options.cache, key) if part is None else part.front
    if front is None:
        return None
    if part is None:
        part = load_part(name, key, front, capture.weights, options, timeline)
    if part is None:
        with ir.make_context(), ir.Location.unknown():
            kernels, cached, decisions = _compile_kernels(
                ir.Module.parse(front.back), options, timeline
            )
        front = replace(front, decisions=decisions)
        part = _load_new(capture, name, front, kernels, cached, options, timeline)
    tell_stages(part, timeline)
    return part


def _front_key(capture: Capture, options: Options) -> str | None:
    if options.printing.is_on:
        return None
    return graph_key(capture, options.device, options.plan, options.error_limit)


def _compile_kernels(
    module: ir.Module,
    options: Options,
    timeline: Timeline,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[dict[str, CompiledKernel], int, tuple[Decision, ...]]:
    """Compile the kernels of a planned back graph; return how many were in the cache, too, and with
    a plan all decisions."""
    cached = 0
    done = 0

    def note(kernel: str, from_cache: bool) -> None:
        nonlocal cached, done
        done += 1
        cached += from_cache
        timeline.tell("kernels", done, max(done, total))

    total = _count_kernels(module)
    decisions: tuple[Decision, ...] = ()
    how: Any = {
        "cache": options.cache,
        "jobs": options.jobs,
        "on_kernel": note,
        "meanwhile": meanwhile,
    }
    with timeline.stage("kernels"):
        if options.plan is None:
            kernels = compile_kernels(module, options.device, **how)
        else:
            kernels, made = compile_planned(
                module, options.device, options.plan, what_of_kernel, **how
            )
            decisions = (*front_decisions(module, options.plan), *made)
    return kernels, cached, decisions


def _load_new(
    capture: Capture,
    name: str,
    front: Front,
    kernels: dict[str, CompiledKernel],
    cached: int,
    options: Options,
    timeline: Timeline,
) -> Part:
    """Keep what was compiled, and load it with the graph's weights."""
    key = _front_key(capture, options)
    front = replace(front, kernels={kernel.name: kernel.key for kernel in kernels.values()})
    keep_front(options.cache, key, front)
    forget_managers()
    give_back_memory()
    if name == "main" and _bytes(capture) >= _LARGE_WEIGHTS:
        dispatch_loop()  # a worker makes it where there is none yet
        WORKERS.end()
    with timeline.stage("program"):
        program = build_program(front.plan, kernels, capture.weights, options.threads)
    return Part(name, key, front, program, kernels, cached)


def _bytes(capture: Capture) -> int:
    """Return the bytes of a graph's weights."""
    return sum(capture.weights.source(name).nbytes for name in capture.weights)


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
    if options.plan is not None:
        tell_front(module, options.plan, options.error_limit)
    PassRunner(printing=printing, lazily=True, on_stage=note).run(module, steps)
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

"""A compiled graph: native parts, each a program with what it came from. Needs no MLIR."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from metadef.codegen.kernel import CompiledKernel, kept_kernels
from metadef.codegen.version import compiler_version
from metadef.plan.decision import Applied, applied
from metadef.runtime.back_graph import Input, Weight
from metadef.runtime.program import Program, build_program

from .graph_cache import Front, find_front
from .native import Graph, NativeGraph
from .options import Options
from .report import Memory, Report, Timeline
from .verdict import Verdict
from .weights import WeightStore

if TYPE_CHECKING:
    from .kernels import KernelSummary


@dataclass(frozen=True)
class Part:
    """One native part: what the front passes made of it, and what came out."""

    name: str
    key: str | None
    front: Front
    program: Program
    kernels: Mapping[str, CompiledKernel]
    cached: int

    @property
    def prefix(self) -> str:
        """What its kernels' names have before them where torch runs other parts of the model."""
        return "" if self.name == "main" else f"{self.name}."

    @cached_property
    def summaries(self) -> tuple[KernelSummary, ...]:
        """What each kernel is, read from the back graph when somebody asks."""
        from metadef import ir  # somebody asks: MLIR is wanted

        from .kernels import summarize_kernels

        with ir.make_context(), ir.Location.unknown():
            return summarize_kernels(ir.Module.parse(self.front.back))

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

    def applied(self, options: Options) -> Applied | None:
        """Return how much of the plan was followed; None where there is none."""
        plan = options.plan
        if plan is None:
            return None
        here = {
            "model": (plan.model, model_key_of(self.parts)),
            "device": (plan.device.fingerprint, options.device.fingerprint()),
            "compiler version": (plan.compiler, compiler_version()),
        }
        differs = [name for name, (meant, met) in here.items() if meant and met and meant != met]
        decisions = [decision for part in self.parts for decision in part.front.decisions]
        return applied(plan, decisions, differs)

    def report(self, timeline: Timeline, weights: WeightStore, options: Options) -> Report:
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
            plan=self.applied(options),
        )


def model_key_of(parts: Sequence[Part]) -> str:
    """Return the key of a model from those of its native parts."""
    keys = [part.front.model_key for part in parts]
    if len(keys) < 2:
        return "".join(keys)
    return hashlib.sha256(" ".join(keys).encode()).hexdigest()[:32]


def load_part(
    name: str,
    key: str | None,
    front: Front,
    weights: Mapping[str, torch.Tensor],
    options: Options,
    timeline: Timeline,
) -> Part | None:
    """Return the program of a kept graph; None if the cache has no longer all its kernels."""
    with timeline.stage("kernels"):
        kernels = kept_kernels(front.kernels, options.cache)
    if kernels is None:
        return None
    with timeline.stage("program"):
        program = build_program(front.plan, kernels, weights, options.threads)
    return Part(name, key, front, program, kernels, len(kernels))


def load_kept(key: str, weights: Mapping[str, torch.Tensor], options: Options) -> Part | None:
    """Return the program of the whole graph that is kept under `key`, if all of it is."""
    front = find_front(options.cache, key)
    if front is None:
        return None
    return load_part("main", key, front, weights, options, Timeline(None))


def tell_stages(part: Part, timeline: Timeline) -> None:
    """Add the stages of a part that was kept, with its nodes; they took no time now."""
    for stage in ("kernels", "program"):
        timeline.add(stage, 0.0)
    for stage, nodes in part.front.nodes:
        timeline.add(stage, 0.0, nodes)


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

"""The named pipelines on one page: each stage, its reason, and the form of IR it leaves."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadef import ir
from metadef.diagnostics import MetadefError, PipelineError, near_names
from metadef.forms import BUFFERS, FRONT, LLVM, LOOPS, TENSORS, Form
from metadef.pass_runner import Step
from metadef.pipeline import parse_passes


@dataclass(frozen=True)
class Stage:
    """A pass of a named pipeline: its text, why it is there, and the form of IR it leaves."""

    text: str
    reason: str
    leaves: Form

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.text.partition("{")[0]


PIPELINES: dict[str, tuple[Stage, ...]] = {
    "front": (
        Stage("convert-torch-to-metadef", "few orthogonal ops, symbolic dims", FRONT),
        Stage("infer-shapes", "every later choice reads the dims", FRONT),
        Stage("eliminate-dead-code", "what nobody reads costs compile time", FRONT),
        Stage("fold-constants", "known at compile time: not computed at run time", FRONT),
        Stage("raise-norms", "a norm in one kernel reads its rows once", FRONT),
        Stage("raise-attention", "its scores stay in the caches", FRONT),
        Stage("fold-batch-norm", "its scale and shift join the weights before it", FRONT),
        Stage("propagate-layout", "channels last suits convolution kernels", FRONT),
        Stage("choose-convolutions", "tiles of 3x3 windows take a quarter of the products", FRONT),
        Stage("canonicalize-contractions", "one form for all products to match", FRONT),
        Stage("eliminate-dead-code", "folding left ops without users", FRONT),
        Stage("group-contractions", "narrow products of one operand fill cores as one", FRONT),
        Stage("choose-precision", "who waits for weights waits for fewer bytes", FRONT),
        Stage("pack-weights", "a register block reads its weights in one run", FRONT),
        Stage("form-kernels", "fused ops pass values in registers", FRONT),
        Stage("outline-kernels", "equal kernels compile once", FRONT),
        Stage("plan-memory", "one arena, reused as values die", FRONT),
    ),
    "kernel": (
        Stage("lower-to-linalg", "loop nests whose access is affine", TENSORS),
        Stage("bufferize", "results go where the caller says", BUFFERS),
        Stage("vectorize", "tiles for the caches, vectors, threads", LOOPS),
        Stage("expand-math", "polynomials: no libm call in a loop", LOOPS),
        Stage("lower-to-llvm", "the form that llvmlite reads", LLVM),
    ),
}


def find_pipeline(name: str) -> tuple[Stage, ...]:
    """Return the stages of the pipeline called `name`.

    Raises:
        MetadefError: no such pipeline.
    """
    if name not in PIPELINES:
        near = near_names(name, PIPELINES) or f"; the pipelines are {', '.join(PIPELINES)}"
        raise MetadefError(f"unknown pipeline '{name}'{near}")
    return PIPELINES[name]


@functools.cache
def passes_of(name: str) -> tuple[Step, ...]:
    """Return the passes of the pipeline called `name`, each with the options its stage gives it."""
    return tuple(parse_passes(pipeline_text(name)))


def pipeline_text(name: str) -> str:
    """Return the pipeline called `name` as a comma-separated list of passes."""
    return ",".join(stage.text for stage in find_pipeline(name))


def check_stage(module: ir.Module, stage: Stage) -> None:
    """Check that `module` is what `stage` leaves.

    Raises:
        PipelineError: names the first op that does not belong, and its place.
    """
    problem = stage.leaves.misfit(module.operation)
    if problem is not None:
        raise PipelineError(f"after stage '{stage.name}': {problem}")


def stage_checker(name: str) -> Callable[[Step, ir.Operation], None]:
    """Return an `on_stage` callback that checks what each stage of the pipeline `name` leaves."""
    stages = iter(find_pipeline(name))

    def check(step: Step, module: ir.Operation) -> None:
        stage = next(stages)
        assert stage.name == step.name(), f"stage {stage.name} is not pass {step.name()}"
        check_stage(module, stage)

    return check


def stage_names(steps: Sequence[Step]) -> list[str]:
    """Return a name for each step; that of a pass which runs again ends in its number."""
    names: list[str] = []
    for step in steps:
        again = sum(name.split("#")[0] == step.name() for name in names)
        names.append(f"{step.name()}#{again + 1}" if again else step.name())
    return names

"""The named pipelines on one page: each stage, its reason, the dialects it takes and leaves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

from metadef import ir
from metadef.diagnostics import MetadefError, PipelineError, near_names
from metadef.pass_runner import Step
from metadef.pipeline import parse_passes


@dataclass(frozen=True)
class Stage:
    """A pass of a named pipeline: its text, why it is there, and the dialects it takes and leaves.

    Regions of `metadef.opaque` hold torch ops by design and are not looked into.
    """

    text: str
    reason: str
    accepts: frozenset[str]
    leaves: frozenset[str]

    @property
    def name(self) -> str:
        """The name of the pass."""
        return self.text.partition("{")[0]


_TORCH = frozenset({"builtin", "func", "torch", "torch_c", "metadef"})
_FRONT = frozenset({"builtin", "func", "metadef"})
_SCALAR = frozenset({"builtin", "func", "arith", "math", "scf", "cf", "affine", "index", "ub"})
_TENSORS = _SCALAR | {"tensor", "linalg", "bufferization"}
_BUFFERS = _SCALAR | {"memref", "linalg", "vector"}
_LOOPS = _SCALAR | {"memref", "vector", "llvm"}
_LLVM = frozenset({"builtin", "llvm"})

PIPELINES: dict[str, tuple[Stage, ...]] = {
    "front": (
        Stage("convert-torch-to-metadef", "few orthogonal ops, symbolic dims", _TORCH, _FRONT),
        Stage("infer-shapes", "every later choice reads the dims", _FRONT, _FRONT),
        Stage("eliminate-dead-code", "what nobody reads costs compile time", _FRONT, _FRONT),
        Stage("fold-constants", "known at compile time: not computed at run time", _FRONT, _FRONT),
        Stage("raise-norms", "a norm in one kernel reads its rows once", _FRONT, _FRONT),
        Stage("fold-batch-norm", "its scale and shift join the weights before it", _FRONT, _FRONT),
        Stage("propagate-layout", "channels last suits convolution kernels", _FRONT, _FRONT),
        Stage("canonicalize-contractions", "one form for all products to match", _FRONT, _FRONT),
        Stage("eliminate-dead-code", "folding left ops without users", _FRONT, _FRONT),
        Stage("pack-weights", "a register block reads its weights in one run", _FRONT, _FRONT),
        Stage("form-kernels", "fused ops pass values in registers", _FRONT, _FRONT),
        Stage("outline-kernels", "equal kernels compile once", _FRONT, _FRONT),
        Stage("plan-memory", "one arena, reused as values die", _FRONT, _FRONT),
    ),
    "kernel": (
        Stage("lower-to-linalg", "loop nests whose access is affine", _FRONT, _TENSORS),
        Stage("bufferize", "results go where the caller says", _TENSORS, _BUFFERS),
        Stage("vectorize", "tiles for the caches, vectors, threads", _BUFFERS, _LOOPS),
        Stage("expand-math", "polynomials: no libm call in a loop", _LOOPS, _LOOPS),
        Stage("lower-to-llvm", "the form that llvmlite reads", _LOOPS, _LLVM),
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


def check_stage(module: ir.Module, stage: Stage, *, before: bool = False) -> None:
    """Check that `module` has only ops of the dialects that `stage` leaves, or accepts (`before`).

    Raises:
        PipelineError: names the first op that does not belong, and its place.
    """
    allowed = stage.accepts if before else stage.leaves
    _check_ops(module.operation, stage, allowed, "before" if before else "after")


def stage_checker(name: str) -> Callable[[Step, ir.Operation], None]:
    """Return an `on_stage` callback that checks what each stage of the pipeline `name` leaves."""
    stages = iter(find_pipeline(name))

    def check(step: Step, module: ir.Operation) -> None:
        stage = next(stages)
        assert stage.name == step.name(), f"stage {stage.name} is not pass {step.name()}"
        _check_ops(module, stage, stage.leaves, "after")

    return check


def _check_ops(op: ir.Operation, stage: Stage, allowed: frozenset[str], when: str) -> None:
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                name = inner.operation.name
                if name.partition(".")[0] not in allowed:
                    raise PipelineError(
                        f"'{name}' op {when} stage '{stage.name}': expected only the dialects "
                        f"{', '.join(sorted(allowed))}; from {inner.location}"
                    )
                if name != "metadef.opaque":
                    _check_ops(inner.operation, stage, allowed, when)

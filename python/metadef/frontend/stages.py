"""The IR of a compiled model after any of its stages, made again on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from metadef import ir
from metadef.codegen.compile import kernel_modules
from metadef.codegen.stages import ASSEMBLY, LLVM_IR, kernel_after, kernel_stages, print_kernel
from metadef.device.attribute import set_device
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, error_text, near_names
from metadef.instrumentation import Printing
from metadef.pass_runner import PassRunner, Step
from metadef.pipelines import passes_of, stage_names
from metadef.plan.decision import Decision
from metadef.plan.kernel_choice import KernelChoice

from .kernels import lines_of
from .planning import chosen_schedules, tell_decided

#: the stage that a native part is compiled from
IMPORT = "import"
#: how a line of comment starts and ends in the text of a stage
_COMMENTS = {LLVM_IR: ("; ", ""), ASSEMBLY: ("/* ", " */")}


def stage_text(
    name: str,
    source: str,
    stage: str,
    spec: DeviceSpec,
    only: str | None = None,
    decisions: Sequence[Decision] = (),
) -> str:
    """Return the IR of a native part after `stage`; `source` is what was imported, and `decisions`
    what came of a plan.

    After a stage of the kernels, it is one text with all of them, each under a comment that says
    where in the model it is used; with `only`, that kernel alone, or nothing if it is not there.
    An op's location is a line of the model at every stage.

    Raises:
        MetadefError: no such stage, or it is one of the whole model and `only` is given, or
            torch-mlir's verifier refuses what its importer made.
    """
    steps: Sequence[Step] = passes_of("front")
    front = [IMPORT, *stage_names(steps)]
    kernel = kernel_stages()
    if stage not in (*front, *kernel):
        names = [*front, *kernel]
        near = near_names(stage, names) or f"; the stages are {', '.join(names)}"
        raise MetadefError(f"no stage '{stage}'{near}")
    if only is not None and stage in front:
        raise MetadefError(
            f"stage '{stage}' is one of the whole model; those of a kernel are {', '.join(kernel)}"
        )
    if stage == IMPORT:
        return source
    with ir.make_context(), ir.Location.unknown():
        try:
            module = ir.Module.parse(source)
        except ir.MLIRError as error:
            text = f"stage '{stage}': what was imported does not verify: {error_text(error)}"
            raise MetadefError(text) from error
    set_device(module, spec)
    tell_decided(module, decisions)
    PassRunner(verify=False).run(module, steps[: front.index(stage) if stage in front else None])
    if stage in front:
        return str(module.operation.get_asm(enable_debug_info=True))
    choices = chosen_schedules(decisions)
    return join_texts(_kernel_texts(name, module, stage, spec, only, choices), stage)


def join_texts(texts: Iterable[str], stage: str) -> str:
    """Return one text for several; MLIR's tools split theirs again (`--split-input-file`)."""
    return ("\n" if stage in _COMMENTS else "\n// -----\n").join(texts)


def _kernel_texts(
    part: str,
    module: ir.Module,
    stage: str,
    spec: DeviceSpec,
    only: str | None,
    choices: Mapping[str, KernelChoice],
) -> Iterator[str]:
    """Yield the text of each kernel of a back graph after `stage`, with where it is used."""
    opening, closing = _COMMENTS.get(stage, ("// ", ""))
    lines = _lines_of_uses(module)
    for name, kernel in kernel_modules(module, spec, choices).items():
        title = name if part == "main" else f"{part}.{name}"
        if only not in (None, title):
            continue
        heading = f"{opening}kernel {title}: {', '.join(lines[name])}{closing}"
        yield f"{heading}\n{kernel_after(kernel, stage)}"


def _lines_of_uses(module: ir.Module) -> dict[str, list[str]]:
    """Return the lines of the model that each kernel computes, wherever it is dispatched."""
    lines: dict[str, dict[str, None]] = {}
    for op in ir.operations(module):
        if op.operation.name == "metadef.dispatch":
            kernel = ir.FlatSymbolRefAttr(op.operation.attributes["kernel"]).value
            lines.setdefault(kernel, {}).update(dict.fromkeys(lines_of(str(op.location))))
    return {kernel: list(found) for kernel, found in lines.items()}


def print_kernels(module: ir.Module, spec: DeviceSpec, printing: Printing) -> None:
    """Print what `printing` selects of each kernel of a back graph, after the front passes.

    Files go to `kernels/<name>` in the folder of the front passes' files.
    """
    for name, kernel in kernel_modules(module, spec).items():
        folder = None if printing.ir_dir is None else printing.ir_dir / "kernels" / name
        print_kernel(kernel, replace(printing, ir_dir=folder))

"""A kernel after each of its stages, for people who read it: made here, with the model's lines.

The passes are those that a worker runs. LLVM then keeps the lines as debug information, which the
code that is run does not have.
"""

from __future__ import annotations

from collections.abc import Iterator

from metadef import ir
from metadef.codegen.build import optimisation_of, target_of
from metadef.codegen.llvm import assembly, llvm_ir
from metadef.device import attribute as device
from metadef.instrumentation import Printing
from metadef.pass_runner import PassRunner
from metadef.pipelines import passes_of
from metadef.upstream import run_upstream

#: what follows the passes: the text that LLVM reads, and what it writes
LLVM_IR, ASSEMBLY = "llvm-ir", "assembly"


def kernel_stages() -> list[str]:
    """Return the names of a kernel's stages in order."""
    return [*(step.name() for step in passes_of("kernel")), LLVM_IR, ASSEMBLY]


def kernel_after(module: ir.Module, stage: str) -> str:
    """Return a kernel after `stage`; its `module` goes through the passes in place.

    Raises:
        MetadefError: a pass failed, or there is no back end for the device.
    """
    count = kernel_stages().index(stage) + 1
    spec = device.of(module)
    PassRunner(verify=False).run(module, passes_of("kernel")[:count])
    if stage not in (LLVM_IR, ASSEMBLY):
        return str(module.operation.get_asm(enable_debug_info=True))
    _add_debug_information(module)
    text = llvm_ir(module)
    if stage == LLVM_IR:
        return text
    return assembly(text, target_of(spec), optimisation_of(module))


def print_kernel(module: ir.Module, printing: Printing) -> None:
    """Run the passes on a kernel's `module` and print what `printing` selects.

    Raises:
        MetadefError: a pass failed.
    """
    PassRunner(printing=printing).run(module, passes_of("kernel"))


def _add_debug_information(module: ir.Module) -> None:
    """Make locations what LLVM keeps: one line for each op, in the scope of its function.

    LLVM has no calls without a line in such a function: what has none gets one of its neighbours'.
    """
    with module.context, ir.Location.unknown():
        ops = list(ir.operations(module))
        line = next((line for op in ops for line in _lines(op.location)), None)
        if line is None:
            return
        for op in ops:
            # LLVM merges the lines of a fused location to line 0, which says nothing.
            op.operation.location = line = next(_lines(op.location), line)
        run_upstream(module.operation, "ensure-debug-info-scope-on-llvm-func")


def _lines(location: ir.Location) -> Iterator[ir.Location]:
    """Yield the places in files that a location is made of."""
    if isinstance(location, ir.FileLineColLoc):
        yield location
    elif isinstance(location, ir.FusedLoc):
        for part in location.locations:
            yield from _lines(part)

"""One kernel's text to its object code, in this process; a worker does this all day."""

from __future__ import annotations

from collections.abc import Callable

from metadef import ir
from metadef.codegen.kernel import KERNEL, CompiledKernel
from metadef.codegen.llvm import (
    VECTOR_CHAINS,
    VECTOR_LOOPS,
    Optimisation,
    Target,
    llvm_ir,
    object_code,
)
from metadef.device import attribute as device
from metadef.device.spec import DeviceSpec
from metadef.pass_runner import PassRunner
from metadef.pipelines import passes_of
from metadef.symbolic import Dim


def build_kernel(
    text: str,
    symbol: str,
    on_stage: Callable[[str], None] = lambda _: None,
    context: ir.Context | None = None,
) -> CompiledKernel:
    """Compile a module with the one function `@kernel` and a `device.spec`; export it as `symbol`.

    `on_stage` hears the name of each stage as it starts. A `context` that was used before is
    quicker than a new one.

    Raises:
        MetadefError: a pass failed, or there is no back end for the device.
    """
    context = context or ir.make_context()
    with context, ir.Location.unknown():
        on_stage("parse")
        module = ir.Module.parse(text)
        target = target_of(device.of(module))
        (function,) = module.body.operations
        function.attributes["sym_name"] = ir.StringAttr.get(symbol)
        steps = passes_of("kernel")
        for step in steps:
            on_stage(step.name())
            # Verified in the end: run again by metadef-opt, it says which pass was at fault.
            PassRunner(verify=step is steps[-1]).run(module, [step])
        on_stage("llvm")
        code = object_code(llvm_ir(module), target, optimisation_of(module))
        exported = next(op for op in module.body.operations if _name(op) == symbol)
        return _described(exported, symbol, code)


def target_of(spec: DeviceSpec) -> Target:
    """Return what LLVM must know of a device."""
    return Target(spec.triple, spec.cpu, spec.features, spec.vector_bits)


def optimisation_of(module: ir.Module) -> Optimisation:
    """Return how hard LLVM is to work on a kernel that went through the passes."""
    marks = {name for op in module.body.operations for name in op.attributes}
    if "metadef.scalar_loops" in marks:
        return Optimisation()
    return VECTOR_LOOPS if "metadef.products" in marks else VECTOR_CHAINS


def _described(function: ir.OpView, symbol: str, code: bytes) -> CompiledKernel:
    """Return the kernel with what `lower-to-llvm` says about it."""
    attributes = function.attributes
    symbols = ir.ArrayAttr(attributes["metadef.symbols"])
    scratch = Dim.of(0)
    if "metadef.scratch" in attributes:
        scratch = Dim.of(ir.StringAttr(attributes["metadef.scratch"]).value)
    return CompiledKernel(
        name=KERNEL,
        symbol=symbol,
        code=code,
        symbols=tuple(ir.StringAttr(s).value for s in symbols),
        scratch=scratch,
        thread_scratch=_count(function, "metadef.thread_scratch"),
        tickets=_count(function, "metadef.tickets"),
        serial="metadef.serial" in attributes,
    )


def _count(function: ir.OpView, attribute: str) -> int:
    attributes = function.attributes
    return ir.IntegerAttr(attributes[attribute]).value if attribute in attributes else 0


def _name(op: ir.OpView) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value if "sym_name" in op.attributes else ""

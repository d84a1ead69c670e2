"""From a module in the LLVM dialect to object code or assembly for a target, through llvmlite.

MLIR's bindings print LLVM IR; LLVM itself comes with llvmlite, the only code generator here, for
this machine and for every other target alike. Nothing in this file needs torch.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import llvmlite.binding as llvm

from metadef import ir
from metadef.codegen.float_literals import for_llvm_22
from metadef.diagnostics import MetadefError


@dataclass(frozen=True)
class Target:
    """What LLVM must know of a device: `features` as in `+avx512f,-sse4a`; `vector_bits` wide."""

    triple: str
    cpu: str
    features: str
    vector_bits: int


@dataclass(frozen=True)
class Optimisation:
    """How hard LLVM tries: `level` 0 to 3; the vectorisers work on what is still scalar.

    With `inlining` a module is optimised as a whole, else function by function. Register blocks
    come unrolled: to unroll the loops around them costs a quarter of LLVM's time and gains nothing.
    With `in_order` instructions and addresses stay as they come.
    """

    level: int = 3
    #: of the back end, where registers are allotted and instructions put in order
    code_level: int = 3
    inlining: bool = True
    loop_unrolling: bool = False
    loop_vectorization: bool = True
    slp_vectorization: bool = False
    in_order: bool = False


#: for loops over vectors: what else LLVM has to offer takes most of its time and finds nothing
VECTOR_LOOPS = Optimisation(level=1, inlining=False)
#: for functions of each element: what is interleaved to hide latencies, as exp and erf of several
#: vectors are, the scheduler would put one after another again, with more registers than there are
VECTOR_CHAINS = replace(VECTOR_LOOPS, in_order=True)


def host_target() -> Target:
    """Return this very machine as LLVM sees it: the dispatch loop and tests run here."""
    features = llvm.get_host_cpu_features()
    bits = 512 if features.get("avx512f") else 256 if features.get("avx2") else 128
    return Target(llvm.get_process_triple(), llvm.get_host_cpu_name(), features.flatten(), bits)


def llvm_ir(module: ir.Module) -> str:
    """Return the LLVM IR of a module in the LLVM dialect."""
    text = ir.llvm.translate_module_to_llvmir(module.operation)
    assert isinstance(text, str)
    return for_llvm_22(text)


def object_code(text: str, target: Target, optimisation: Optimisation = Optimisation()) -> bytes:
    """Compile LLVM IR to a relocatable object file (ELF, Mach-O or COFF, by the triple).

    Raises:
        MetadefError: this LLVM has no back end for the triple.
    """
    machine = _target_machine(target, optimisation)
    code = machine.emit_object(_optimised(text, machine, optimisation))
    assert isinstance(code, bytes)
    return code


def assembly(text: str, target: Target, optimisation: Optimisation = Optimisation()) -> str:
    """Compile LLVM IR to the target's assembly text (PTX for NVPTX).

    Raises:
        MetadefError: this LLVM has no back end for the triple.
    """
    machine = _target_machine(target, optimisation)
    return str(machine.emit_assembly(_optimised(text, machine, optimisation)))


def optimised_llvm_ir(
    text: str, target: Target, optimisation: Optimisation = Optimisation()
) -> str:
    """Return LLVM IR after LLVM's own optimiser, for people who read it.

    Raises:
        MetadefError: this LLVM has no back end for the triple.
    """
    machine = _target_machine(target, optimisation)
    return str(_optimised(text, machine, optimisation))


def _optimised(
    text: str, machine: llvm.TargetMachine, optimisation: Optimisation
) -> llvm.ModuleRef:
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    for function in module.functions:
        function.add_function_attribute("nounwind")
    tuning = llvm.create_pipeline_tuning_options(speed_level=optimisation.level)
    tuning.loop_unrolling = optimisation.loop_unrolling
    tuning.loop_vectorization = optimisation.loop_vectorization
    tuning.slp_vectorization = optimisation.slp_vectorization
    builder = llvm.create_pass_builder(machine, tuning)
    if optimisation.inlining:
        builder.getModulePassManager().run(module, builder)
        return module
    manager = builder.getFunctionPassManager()
    for function in module.functions:
        if not function.is_declaration:
            manager.run(function, builder)
    return module


def _target_machine(target: Target, optimisation: Optimisation) -> llvm.TargetMachine:
    architecture = target.triple.partition("-")[0]
    _initialise_llvm(architecture == llvm.get_process_triple().partition("-")[0])
    try:
        backend = llvm.Target.from_triple(target.triple)
    except RuntimeError as error:
        raise MetadefError(
            f"device triple '{target.triple}': expected a triple that LLVM "
            f"{llvm.llvm_version_info[0]} has a back end for, got {error}"
        ) from error
    features = target.features
    if architecture == "x86_64":
        _keep_order(optimisation.in_order)
    if target.vector_bits >= 512 and architecture == "x86_64":
        # Some CPUs are tuned to 256 bits to save clock; the device says what it is worth here.
        features = f"{features},-prefer-256-bit".lstrip(",")
    return backend.create_target_machine(
        cpu=target.cpu,
        features=features,
        opt=optimisation.code_level,
        reloc="pic",
        codemodel="small",
    )


def _keep_order(in_order: bool) -> None:
    """Switch LLVM's scheduler and its loop strength reduction, which the whole process shares."""
    llvm.set_option("metadef", f"-enable-misched={str(not in_order).lower()}")
    llvm.set_option("metadef", f"-disable-lsr={str(in_order).lower()}")


@functools.cache
def _initialise_llvm(native: bool) -> None:
    """Load the back end of this machine, which is a tenth of them, or all."""
    if native:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
    else:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()

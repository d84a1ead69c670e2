"""All kernels of a back graph to object code: from the cache, or by worker processes.

kernels = compile_kernels(module, spec, cache=default_cache())
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace

from metadef import ir
from metadef.codegen.kernel import KERNEL, CompiledKernel
from metadef.codegen.protocol import Message
from metadef.codegen.version import compiler_version
from metadef.codegen.workers import WORKERS, WorkerCrash
from metadef.device.attribute import ATTRIBUTE, attribute_of
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, PipelineError
from metadef.passes._kernel_choice import set_choice
from metadef.pipelines import pipeline_text
from metadef.plan.kernel_choice import BY_RULE, KernelChoice
from metadef.runtime.back_graph import Arena
from metadef.runtime.back_graph_reader import read_plan
from metadef.runtime.cache import Cache

#: called with a kernel's name and whether it came from the cache
OnKernel = Callable[[str, bool], None]


@dataclass(frozen=True)
class KernelSource:
    """A kernel of the back graph as text with the device, and the hash that it is cached under."""

    name: str
    text: str
    key: str
    location: str

    @property
    def symbol(self) -> str:
        """The name under which its code exports it; as unique as the hash."""
        return f"metadef_{self.key[:24]}"


def compile_kernels(
    module: ir.Module,
    spec: DeviceSpec,
    *,
    cache: Cache,
    jobs: int = 2,
    on_kernel: OnKernel | None = None,
    meanwhile: Callable[[], object] = lambda: None,
    keep_failures: bool = True,
) -> dict[str, CompiledKernel]:
    """Return the compiled kernels of a planned back graph by name; equal kernels compile once.

    At most `jobs` worker processes compile what the cache does not have; `meanwhile` is called once
    they have begun. The text of a kernel that fails is kept in a file, unless `keep_failures` is
    off.

    Raises:
        MetadefError: a kernel cannot be compiled; says which, where it comes from, and how to
            see it happen again.
    """
    sources = kernel_sources(module, spec)
    settings = Settings(cache, jobs, on_kernel or (lambda name, cached: None), keep_failures)
    compiled = compile_sources(sources, settings, meanwhile)
    return {s.name: replace(compiled[s.key], name=s.name, key=s.key) for s in sources}


@dataclass(frozen=True)
class Settings:
    """How kernels are compiled: see `compile_kernels`."""

    cache: Cache
    jobs: int
    report: OnKernel
    keep_failures: bool


def compile_sources(
    sources: Iterable[KernelSource],
    settings: Settings,
    meanwhile: Callable[[], object] = lambda: None,
    failures: dict[str, MetadefError] | None = None,
) -> dict[str, CompiledKernel]:
    """Return the compiled kernels by key, from the cache or by workers.

    Those that cannot be compiled are left out and their errors put into `failures`, if it is given.

    Raises:
        MetadefError: a kernel cannot be compiled.
    """
    cache, report = settings.cache, settings.report
    compiled: dict[str, CompiledKernel] = {}
    missing: dict[str, KernelSource] = {}
    for source in sources:
        if source.key in compiled or source.key in missing:
            continue
        content = cache.get(source.key)
        if content is None:
            missing[source.key] = source
        else:
            compiled[source.key] = CompiledKernel.from_bytes(source.name, content)
            report(source.name, True)
    executor = ThreadPoolExecutor(max(1, min(settings.jobs, len(missing))))
    try:
        # The largest first: the last to finish should be small.
        order = sorted(missing.values(), key=lambda source: -len(source.text))
        futures = {executor.submit(_compile, s, settings.keep_failures): s for s in order}
        meanwhile()
        for future in as_completed(futures):
            source = futures[future]
            try:
                kernel = compiled[source.key] = future.result()
            except MetadefError as error:
                if failures is None:
                    raise
                failures[source.key] = error
                continue
            cache.put(source.key, kernel.to_bytes())
            report(source.name, False)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    return compiled


def warm_up(jobs: int = 2) -> None:
    """Start the workers ahead of need: they load MLIR while the model is being captured."""
    WORKERS.start(jobs)


def kernel_sources(module: ir.Module, spec: DeviceSpec) -> list[KernelSource]:
    """Return the text and the key of each kernel that the back graph dispatches."""
    return [
        kernel_source(op, spec, claims_noalias) for op, claims_noalias in dispatched_kernels(module)
    ]


def kernel_source(
    function: ir.OpView, spec: DeviceSpec, claims_noalias: bool, choice: KernelChoice = BY_RULE
) -> KernelSource:
    """Return the text and the key of a kernel under a choice."""
    with function.context, ir.Location.unknown():
        text = _kernel_text(function, spec, claims_noalias, choice)
    return KernelSource(function.name.value, text, _key_of(text), _first_location(function))


def under_choice(source: KernelSource, choice: KernelChoice) -> KernelSource:
    """Return a kernel under a choice, as `kernel_source` does."""
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(source.text)
        (function,) = module.body.operations
        set_choice(function, choice)
        text = _text_of(module)
    return replace(source, text=text, key=_key_of(text))


def kernel_modules(
    module: ir.Module, spec: DeviceSpec, choices: Mapping[str, KernelChoice] | None = None
) -> dict[str, ir.Module]:
    """Return each kernel that the back graph dispatches as what is compiled for it, to be read,
    under its choice in `choices`.

    Its function keeps its name and the locations of the model, which the text for compilation
    leaves out so that equal kernels are one.
    """
    modules = {}
    for op, claims_noalias in dispatched_kernels(module):
        with module.context, ir.Location.unknown():
            choice = (choices or {}).get(op.name.value, BY_RULE)
            modules[op.name.value] = _kernel_module(op, spec, claims_noalias, choice)
    return modules


def dispatched_kernels(module: ir.Module) -> Iterator[tuple[ir.OpView, bool]]:
    """Yield each kernel function that is dispatched, and whether its buffers never overlap."""
    in_place, used = _dispatched(module)
    for op in module.body.operations:
        if op.operation.name == "func.func" and op.name.value in used:
            yield op, op.name.value not in in_place


def _dispatched(module: ir.Module) -> tuple[set[str], set[str]]:
    """Return the kernels that some dispatch runs in place, and all that are dispatched."""
    in_place: set[str] = set()
    used: set[str] = set()
    for step in read_plan(module).steps:
        used.add(step.kernel)
        places = {b.offset for b in step.reads if isinstance(b, Arena)}
        if any(isinstance(b, Arena) and b.offset in places for b in step.writes):
            in_place.add(step.kernel)
    return in_place, used


def _kernel_text(
    function: ir.OpView, spec: DeviceSpec, claims_noalias: bool, choice: KernelChoice
) -> str:
    """Return a module with `function` alone, under a name that does not tell which it is."""
    module = _kernel_module(function, spec, claims_noalias, choice)
    (kernel,) = module.body.operations
    kernel.attributes["sym_name"] = ir.StringAttr.get(KERNEL)
    return _text_of(module)


def _text_of(module: ir.Module) -> str:
    text = module.operation.get_asm(
        print_generic_op_form=True, use_local_scope=True, assume_verified=True
    )
    assert isinstance(text, str)
    return text


def _key_of(text: str) -> str:
    return hashlib.sha256(f"{compiler_version()}\n{text}".encode()).hexdigest()


def _kernel_module(
    function: ir.OpView, spec: DeviceSpec, claims_noalias: bool, choice: KernelChoice
) -> ir.Module:
    module = ir.Module.create()
    # What code generation does not read stays out of the text, and so out of the key.
    module.operation.attributes[ATTRIBUTE] = attribute_of(spec.for_code_generation())
    kernel = function.operation.clone(ip=ir.InsertionPoint(module.body))
    if "sym_visibility" in kernel.attributes:
        del kernel.attributes["sym_visibility"]
    if choice != BY_RULE:
        set_choice(kernel.opview, choice)
    if claims_noalias:
        kernel.attributes["metadef.noalias"] = ir.UnitAttr.get()
    return module


def _first_location(function: ir.OpView) -> str:
    """Return where the first op of a kernel comes from."""
    operations = ir.entry_block(function).operations
    return str(operations[0].location).removeprefix("loc(").removesuffix(")")


def _compile(source: KernelSource, keep: bool) -> CompiledKernel:
    """Have a worker compile a kernel."""
    what = f"kernel '{source.name}' (from {source.location})"
    try:
        request = Message({"op": "build", "symbol": source.symbol}, source.text.encode())
        answer = WORKERS.ask(request)
    except WorkerCrash as crash:
        raise PipelineError(f"{what}: the compiler crashed: {crash}{_hint(source, keep)}") from None
    error = answer.header.get("error")
    if error is None:
        return CompiledKernel.from_bytes(source.name, answer.body)
    kind = MetadefError if answer.header["kind"] == "user" else PipelineError
    raise kind(f"{what}: {error}{_hint(source, keep)}")


def _hint(source: KernelSource, keep: bool) -> str:
    """Keep the kernel's text in a file; return the line that says how to use it."""
    if not keep:
        return ""
    configuration = f"--pass-pipeline=builtin.module({pipeline_text('kernel')})"
    try:
        handle, path = tempfile.mkstemp(prefix=f"metadef-{source.name}-", suffix=".mlir")
        with os.fdopen(handle, "w") as file:
            file.write(f"// configuration: '{configuration}'\n{source.text}\n")
    except OSError as error:
        return f"\nits text could not be kept: {error}"
    return f"\nto reproduce: metadef-opt --run-reproducer {path}"

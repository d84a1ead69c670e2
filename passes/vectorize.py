"""Tile, vectorise and parallelise the linalg ops of a kernel on memrefs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from metadef import ir
from metadef.device import attribute as device
from metadef.device.instructions import overwrites_operands
from metadef.diagnostics import MetadefError
from metadef.forms import BUFFERS
from metadef.passes.loop_nests.decisions import main_nest
from metadef.passes.loop_nests.grouping import Nest
from metadef.passes.loop_nests.nest import NestEmitter
from metadef.passes.loop_nests.run import Run
from metadef.passes.loop_nests.schedule import Target
from metadef.passes.loop_nests.shared_buffers import (
    Dependences,
    allocation_bytes,
    place_allocations,
)
from metadef.passes.loop_nests.tasks import Threads
from metadef.passes.loop_nests.whole_loops import (
    is_shareable,
    may_run_alone,
    run_alone,
    share_out,
    touched,
)
from metadef.pipeline import Pass
from metadef.plan.kernel_choice import BY_RULE, KernelChoice
from metadef.upstream import run_upstream

from ._kernel_abi import BARRIER, PRODUCTS, SCALAR_LOOPS, SERIAL, TICKETS, unfit
from ._kernel_choice import CHOICE, choice_of
from ._locations import fuse_locations

# fmt: off
_PURE = (
    "arith.", "vector.", "math.", "affine.apply",
    "memref.subview", "memref.expand_shape", "memref.collapse_shape", "memref.cast", "memref.dim",
    "memref.reinterpret_cast", "memref.alloc", "memref.view", "memref.get_global",
    "memref.assume_alignment", "memref.extract_strided_metadata",
)
# fmt: on


@dataclass(frozen=True)
class Vectorize(Pass):
    """Turn linalg on memrefs into loops of vectors, shared out over threads.

    Before:
        func.func @k(%x: memref<1024xf32>, %y: memref<1024xf32>) {
          linalg.generic {...} ins(%x) outs(%y) { ^bb0(%a: f32, %b: f32): ... }
    After:
        func.func @k(%x: memref<1024xf32>, %y: memref<1024xf32>, %tid: index, %nthreads: index) {
          scf.for %task = %lower to %upper step %c1 { scf.for %i ... { vector.load ... } }

    Runs of structured ops become nests (see `loop_nests/`). A loop marked `metadef.parallel` (over
    rows to be sorted, say) is shared out too, and any other is for thread 0. A function of nothing
    but such loops, or with other side effects, is marked `metadef.serial`: one thread runs it.
    Where loops over single elements are left, it is marked `metadef.scalar_loops`, and where it
    has sums of products, `metadef.products`. What a function's `metadef.choice` says of its main
    nest (see `plan/kernel_choice.py`) goes before the rules. Arguments are added for the thread's
    number, the number of threads, what threads take their work from if it is long, and scratch
    memory.
    """

    accepts = BUFFERS
    requires: ClassVar[str] = "functions of linalg, memref, scf, arith and math on memrefs"
    leaves: ClassVar[str] = "functions of scf, vector, memref, arith and math; more arguments"

    def run(self, module: ir.Operation) -> None:
        generalize(module)
        target = target_of(module)
        for op in list(ir.entry_block(module).operations):
            if op.operation.name == "func.func" and "sym_visibility" not in op.attributes:
                _vectorize_as_chosen(op, target)


def _vectorize_as_chosen(func: ir.OpView, target: Target) -> None:
    """Vectorise a kernel function; say which it is that cannot be as its choice wants."""
    chosen = CHOICE in func.attributes
    try:
        vectorize_function(func, target)
    except MetadefError as error:
        raise (unfit(func, str(error)) if chosen else error) from error


def target_of(module: ir.Operation) -> Target:
    """Return the traits of the module's `device.spec` that vectorising asks for."""
    if device.ATTRIBUTE not in module.attributes:
        return Target()
    spec = device.of(module)
    l1, l2 = spec.cache(1), spec.cache(2)
    return Target(
        vector_bits=spec.vector_bits,
        vector_registers=spec.vector_registers,
        l1_bytes=l1.bytes if l1 else Target.l1_bytes,
        l2_bytes=l2.bytes if l2 else Target.l2_bytes,
        last_cache_bytes=max((c.bytes for c in spec.caches), default=Target.last_cache_bytes),
        cores=spec.cores,
        fuses_products=spec.instruction("fma", "f32") is not None,
        overwrites_operands=overwrites_operands(spec),
    )


def vectorize_function(func: ir.OpView, target: Target) -> None:
    """Vectorise one kernel function; it gains the arguments %tid, %nthreads, %tickets
    and scratch.

    Raises:
        MetadefError: what its `metadef.choice` says cannot be.
    """
    entry = ir.entry_block(func)
    choices = _Choices.of(func, target)
    index = ir.IndexType.get()
    unknown = ir.Location.unknown()
    serial = _is_serial(entry)
    if not all(_is_plain(op.operation) for op in entry.operations):
        func.attributes[SCALAR_LOOPS] = ir.UnitAttr.get()
    tid, count = entry.add_argument(index, unknown), entry.add_argument(index, unknown)
    tickets = entry.add_argument(_words(), unknown)
    alone, threads = Threads(), Threads(tid, count, tickets)
    first, *inner = _blocks(func.operation)
    _vectorize_block(first, entry, target, alone if serial else threads, choices)
    for block in inner:
        _vectorize_block(block, entry, target, alone, choices)
    added: list[dict[str, ir.Attribute]] = [{}, {}]
    if threads.loops:
        loops = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), threads.loops)
        func.attributes[TICKETS] = loops
        added.append({TICKETS: ir.UnitAttr.get()})
    else:
        entry.erase_argument(tickets.arg_number)
    if serial:
        func.attributes[SERIAL] = ir.UnitAttr.get()
    else:
        _erase_unused(entry)
        added += place_allocations(func, entry)
    _update_type(func, entry, added)


def _words() -> ir.Type:
    """Return the type of 64-bit words of no known number."""
    return ir.MemRefType.get([ir.ShapedType.get_dynamic_size()], ir.IntegerType.get_signless(64))


def _is_serial(entry: ir.Block) -> bool:
    """Tell whether a function has no work for several threads, or other than loops and nests."""
    ops = [op.operation for op in entry.operations]
    known = all(_is_plain(op) or is_shareable(op) or may_run_alone(op) for op in ops)
    shared = any(_is_structured(op) or is_shareable(op) for op in ops)
    loops = any(not _is_plain(op) for op in ops)
    placed = all(allocation_bytes(op) is not None for op in ops if op.name == "memref.alloc")
    return not known or loops and not (shared and placed)


def _erase_unused(entry: ir.Block) -> None:
    """Erase views and allocations of the entry block that nothing reads any more."""
    for op in reversed(list(entry.operations)):
        used = any(u.owner.operation.name != "memref.dealloc" for r in op.results for u in r.uses)
        if op.operation.name.startswith("memref.") and op.results and not used:
            for u in [u for r in op.results for u in r.uses]:
                u.owner.operation.erase()
            op.operation.erase()


@dataclass(eq=False)
class _Choices:
    """What is wanted of a function's nests, which come in order: `choice` of nest number `main`."""

    choice: KernelChoice = BY_RULE
    main: int | None = None
    done: int = 0

    @staticmethod
    def of(func: ir.OpView, target: Target) -> _Choices:
        """Take what the function says."""
        choice = choice_of(func)
        if CHOICE in func.attributes:
            del func.attributes[CHOICE]
        if choice == BY_RULE:
            return _Choices()
        copy = func.operation.clone(ip=ir.InsertionPoint(func))
        main = main_nest(nests_of(copy.opview, target))
        copy.erase()
        if main is None:
            raise MetadefError(f"{CHOICE}: expected nothing, as the kernel has no loop nest")
        return _Choices(choice, main)

    def next(self) -> KernelChoice:
        """Return what is wanted of the next nest."""
        wanted = self.choice if self.done == self.main else BY_RULE
        self.done += 1
        return wanted


def nests_of(func: ir.OpView, target: Target) -> list[Nest]:
    """Return the nests of a function of structured ops, in the order in which they are built.

    The function is good for nothing but to look at them from then on.
    """
    packs = not _is_serial(ir.entry_block(func))
    nests = []
    for n, block in enumerate(_blocks(func.operation)):
        for run, before in _runs(block):
            with ir.InsertionPoint(before), run[0].location:
                nests += Run.of(run, target, packs=packs and n == 0).nests
    return nests


def _runs(block: ir.Block) -> Iterator[tuple[list[ir.OpView], ir.OpView]]:
    """Yield each run of structured ops of a block with the op that it is built before."""
    run: list[ir.OpView] = []
    ops = list(block.operations)
    for op in ops:
        if op.operation.name == "linalg.generic":
            run.append(op)
        elif run and not _is_movable(op.operation):
            yield run, op
            run = []
    if run:
        yield run, ops[-1]


def _vectorize_block(
    block: ir.Block, entry: ir.Block, target: Target, threads: Threads, choices: _Choices
) -> None:
    """Replace each run of structured ops in a block by nests."""
    dependences = Dependences()
    parallel = threads.tid is not None
    runs = {before.operation: run for run, before in _runs(block)}
    for op in [*block.operations]:
        if op.operation.name == "linalg.generic":
            continue
        if op.operation in runs:
            waits = dependences if parallel else None
            _emit_run(runs[op.operation], op, entry, target, threads, waits, choices)
        if parallel and not _is_plain(op.operation):
            with ir.InsertionPoint(op), op.location:
                if dependences.must_wait(*touched(op)):
                    _barrier(entry)
            (share_out if is_shareable(op.operation) else run_alone)(op, threads)


def _emit_run(
    ops: list[ir.OpView],
    before: ir.OpView,
    entry: ir.Block,
    target: Target,
    threads: Threads,
    dependences: Dependences | None,
    choices: _Choices,
) -> None:
    """Build the nests of a run of structured ops before the op `before`, and erase them."""
    with ir.InsertionPoint(before), ops[0].location:
        run = Run.of(ops, target, packs=dependences is not None)
        emitter = NestEmitter(target, threads, run.flat, entry, run.past)
        for nest in run.nests:
            with fuse_locations(stage.op.location for stage in nest.stages):
                if dependences is not None and dependences.needs_barrier(nest.stages):
                    _barrier(entry)
                if any(stage.sums_products for stage in nest.stages):
                    entry.owner.attributes[PRODUCTS] = ir.UnitAttr.get()
                if not emitter.emit(nest, choices.next()):
                    entry.owner.attributes[SCALAR_LOOPS] = ir.UnitAttr.get()
    for op in run.ops:
        op.operation.erase()


def _barrier(entry: ir.Block) -> None:
    """Wait for the other threads; the declaration stands beside the kernel."""
    func = entry.owner
    module = func.operation.parent
    names = [op.attributes["sym_name"].value for op in ir.entry_block(module).operations]
    if BARRIER not in names:
        with ir.InsertionPoint(func):
            ir.func.FuncOp(BARRIER, ([], []), visibility="private")
    ir.func.CallOp([], BARRIER, [])


def _blocks(op: ir.Operation) -> list[ir.Block]:
    """Return the blocks nested in a function, but not those inside structured ops."""
    found: list[ir.Block] = []
    for region in op.regions:
        for block in region:
            found.append(block)
            for inner in block.operations:
                if inner.operation.name != "linalg.generic":
                    found += _blocks(inner.operation)
    return found


def _is_plain(op: ir.Operation) -> bool:
    """Tell whether every thread may run an op of a function's entry block."""
    plain = ("linalg.generic", "memref.dealloc", "func.return")
    return op.name in plain or op.name.startswith(_PURE)


def _is_structured(op: ir.Operation | ir.OpView) -> bool:
    return op.operation.name == "linalg.generic"


def _is_movable(op: ir.Operation) -> bool:
    """Tell whether a run of structured ops may be built after an op between them."""
    return op.name.startswith(_PURE)


def generalize(module: ir.Operation) -> None:
    """Bring named linalg ops and copies to `linalg.generic`."""
    for op in ir.operations(module):
        if op.operation.name == "memref.copy":
            _generic_copy(op)
    run_upstream(module, "func.func(linalg-generalize-named-ops)")


def _generic_copy(op: ir.OpView) -> None:
    source, destination = op.operands
    rank = ir.MemRefType(source.type).rank
    with ir.InsertionPoint(op), op.location:
        ir.linalg.copy(source, outs=[destination]) if rank else ir.memref.store(
            ir.memref.load(source, []), destination, []
        )
    op.operation.erase()


def _update_type(func: ir.OpView, entry: ir.Block, added: list[dict[str, ir.Attribute]]) -> None:
    """Bring the function's type and argument attributes up to date with its added arguments."""
    inputs = [a.type for a in entry.arguments]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, []))
    old = [ir.DictAttr.get({})] * (len(inputs) - len(added))
    if "arg_attrs" in func.attributes:
        old = list(ir.ArrayAttr(func.attributes["arg_attrs"]))
    func.attributes["arg_attrs"] = ir.ArrayAttr.get(old + [ir.DictAttr.get(a) for a in added])

"""Tile, vectorise and parallelise the linalg ops of a kernel on memrefs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from metadef import ir
from metadef.device import attribute as device
from metadef.forms import BUFFERS
from metadef.passes.loop_nests.access import FlatBuffer, flatten
from metadef.passes.loop_nests.grouping import form_nests, merge_epilogues, merge_fills
from metadef.passes.loop_nests.nest import NestEmitter
from metadef.passes.loop_nests.packing import pack_operand
from metadef.passes.loop_nests.padding import merge_padding
from metadef.passes.loop_nests.schedule import Target, choose
from metadef.passes.loop_nests.shared_buffers import (
    Dependences,
    allocation_bytes,
    place_allocations,
    root,
)
from metadef.passes.loop_nests.stage import Stage, collapse, parse_stage
from metadef.passes.loop_nests.streaming import streamed
from metadef.passes.loop_nests.tasks import Threads
from metadef.passes.loop_nests.whole_loops import (
    is_shareable,
    may_run_alone,
    run_alone,
    share_out,
    touched,
)
from metadef.passes.loop_nests.window_tile import window_tile
from metadef.pipeline import Pass
from metadef.upstream import run_upstream

from ._kernel_abi import BARRIER, PRODUCTS, SCALAR_LOOPS, SERIAL, TICKETS
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
    has sums of products, `metadef.products`. Arguments are added for the thread's number, the
    number of threads, what threads take their work from if it is long, and scratch memory.
    """

    accepts = BUFFERS
    requires: ClassVar[str] = "functions of linalg, memref, scf, arith and math on memrefs"
    leaves: ClassVar[str] = "functions of scf, vector, memref, arith and math; more arguments"

    def run(self, module: ir.Operation) -> None:
        _generalize(module)
        target = target_of(module)
        for op in list(ir.entry_block(module).operations):
            if op.operation.name == "func.func" and "sym_visibility" not in op.attributes:
                vectorize_function(op, target)


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
    )


def vectorize_function(func: ir.OpView, target: Target) -> None:
    """Vectorise one kernel function; it gains the arguments %tid, %nthreads, %tickets
    and scratch."""
    entry = ir.entry_block(func)
    index = ir.IndexType.get()
    unknown = ir.Location.unknown()
    serial = _is_serial(entry)
    if not all(_is_plain(op.operation) for op in entry.operations):
        func.attributes[SCALAR_LOOPS] = ir.UnitAttr.get()
    tid, count = entry.add_argument(index, unknown), entry.add_argument(index, unknown)
    tickets = entry.add_argument(_words(), unknown)
    alone, threads = Threads(), Threads(tid, count, tickets)
    first, *inner = _blocks(func.operation)
    _vectorize_block(first, entry, target, alone if serial else threads)
    for block in inner:
        _vectorize_block(block, entry, target, alone)
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


def _vectorize_block(block: ir.Block, entry: ir.Block, target: Target, threads: Threads) -> None:
    """Replace each run of structured ops in a block by nests."""
    run: list[ir.OpView] = []
    dependences = Dependences()
    parallel = threads.tid is not None
    for op in [*block.operations]:
        if op.operation.name == "linalg.generic":
            run.append(op)
            continue
        if run and not _is_movable(op.operation):
            _emit_run(run, op, entry, target, threads, dependences if parallel else None)
            run = []
        if parallel and not _is_plain(op.operation):
            with ir.InsertionPoint(op), op.location:
                if dependences.must_wait(*touched(op)):
                    _barrier(entry)
            (share_out if is_shareable(op.operation) else run_alone)(op, threads)
    if run:
        last = list(block.operations)[-1]
        _emit_run(run, last, entry, target, threads, dependences if parallel else None)


def _emit_run(
    run: list[ir.OpView],
    before: ir.OpView,
    entry: ir.Block,
    target: Target,
    threads: Threads,
    dependences: Dependences | None,
) -> None:
    """Build the nests of a run of structured ops before the op `before`, and erase them."""
    flats: dict[ir.Value, FlatBuffer] = {}

    def flat(buffer: ir.Value) -> FlatBuffer:
        if buffer not in flats:
            owner = buffer.owner
            at = (
                ir.InsertionPoint.at_block_begin(owner)
                if isinstance(owner, ir.Block)
                else _after(owner.operation)
            )
            with at:
                flats[buffer] = flatten(buffer)
        return flats[buffer]

    with ir.InsertionPoint(before), run[0].location:
        if dependences is not None:
            run = _with_packing(run, flat, target)
        stages = [parse_stage(op, flat) for op in run]
        temporaries = _temporaries(stages, {op.operation for op in run})
        stages = merge_padding(merge_fills(stages), partial(_as_good, target))
        stages = merge_epilogues(stages, temporaries)
        past = frozenset(flat(b).flat for b in streamed(stages, target))
        emitter = NestEmitter(target, threads, flat, entry, past)
        for nest in form_nests(stages, temporaries):
            if len(nest.stages) == 1:
                nest.stages[0] = collapse(nest.stages[0])
                nest.common[0] = nest.stages[0].parallel_dims
            with fuse_locations(stage.op.location for stage in nest.stages):
                if dependences is not None and dependences.needs_barrier(nest.stages):
                    _barrier(entry)
                if any(stage.sums_products for stage in nest.stages):
                    entry.owner.attributes[PRODUCTS] = ir.UnitAttr.get()
                if not emitter.emit(nest):
                    entry.owner.attributes[SCALAR_LOOPS] = ir.UnitAttr.get()
    for op in run:
        op.operation.erase()


def _as_good(target: Target, padded: Stage, bounded: Stage) -> bool:
    """Tell whether a stage without padding has the lanes that it has with it, or has its windows
    in tiles."""
    if window_tile(bounded, target) is not None:
        return True
    schedules = [choose(s, s.extents, target) for s in (padded, bounded)]
    return all(s.lanes == schedules[0].lanes and not s.over_reduction for s in schedules)


def _with_packing(
    run: list[ir.OpView], flat: Callable[[ir.Value], FlatBuffer], target: Target
) -> list[ir.OpView]:
    """Return the run with a copy into panels for each product that wants one.

    A copy comes right after what it reads is written, or first: between two ops that hand each
    other rows it would keep them from sharing loops.
    """
    result: list[ir.OpView] = []
    for op in run:
        with op.location:
            copy = pack_operand(op, flat, target)
        if copy is not None:
            source = root(copy.operands[0])
            writers = [i for i, other in enumerate(result) if source in _written(other)]
            result.insert(writers[-1] + 1 if writers else 0, copy)
        result.append(op)
    return result


def _written(op: ir.OpView) -> set[ir.Value]:
    """Return the buffers that a structured op writes, not the views of them."""
    return {root(buffer) for buffer in op.outputs}


def _barrier(entry: ir.Block) -> None:
    """Wait for the other threads; the declaration stands beside the kernel."""
    func = entry.owner
    module = func.operation.parent
    names = [op.attributes["sym_name"].value for op in ir.entry_block(module).operations]
    if BARRIER not in names:
        with ir.InsertionPoint(func):
            ir.func.FuncOp(BARRIER, ([], []), visibility="private")
    ir.func.CallOp([], BARRIER, [])


def _temporaries(stages: list[Stage], run: set[ir.Operation]) -> set[ir.Value]:
    """Return the allocations that only structured ops of this run touch."""
    found: set[ir.Value] = set()
    for stage in stages:
        for buffer in stage.writes:
            owner = buffer.owner
            if isinstance(owner, ir.Block):
                continue
            if owner.operation.name not in ("memref.alloc", "memref.view"):
                continue
            users = [u.owner.operation for u in buffer.uses]
            if all(
                u in run or u.name in ("memref.dealloc", "memref.reinterpret_cast", "memref.dim")
                for u in users
            ):
                found.add(buffer)
    return found


def _after(op: ir.Operation) -> ir.InsertionPoint:
    """Return the place right after an op."""
    return ir.InsertionPoint.after(op)


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


def _generalize(module: ir.Operation) -> None:
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

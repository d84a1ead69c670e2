"""Loops that are no structured ops: rows shared out over the threads, or all for thread 0."""

from __future__ import annotations

from metadef import ir

from .index_math import add, sub, value
from .shared_buffers import PRIVATE, root
from .tasks import Threads

#: marks an `scf.for` of step 1 whose turns depend on no other turn
PARALLEL = "metadef.parallel"

_STORES = ("memref.store", "vector.store", "vector.maskedstore", "memref.copy")


def is_shareable(op: ir.Operation) -> bool:
    """Tell whether each thread may run some of an op's turns."""
    return op.name == "scf.for" and PARALLEL in op.attributes and not op.results


def may_run_alone(op: ir.Operation) -> bool:
    """Tell whether the other threads can do without an op: it leaves what it does in memory."""
    return op.name.startswith(("scf.", "memref.")) and not op.results


def touched(op: ir.OpView) -> tuple[set[ir.Value], set[ir.Value]]:
    """Return the buffers that an op reads, and those that it writes (read or not)."""
    reads: set[ir.Value] = set()
    writes: set[ir.Value] = set()
    for inner in (op, *ir.operations(op)):
        buffers = {root(v) for v in inner.operands if isinstance(v.type, ir.MemRefType)}
        name = inner.operation.name
        (writes if name in _STORES or name.startswith("linalg.") else reads).update(buffers)
    return reads, writes


def share_out(loop: ir.OpView, threads: Threads) -> None:
    """Leave this thread its run of the turns; what a turn allocates is the thread's own."""
    lower, upper = loop.operation.operands[:2]
    with ir.InsertionPoint(loop), loop.location:
        bounds = threads.share(sub(upper, lower))
        for k, bound in enumerate(bounds):
            loop.operation.operands[k] = value(add(lower, bound))
    for inner in ir.operations(loop):
        if inner.operation.name == "memref.alloc":
            inner.operation.move_before(loop.operation)
            inner.attributes[PRIVATE] = ir.UnitAttr.get()


def run_alone(op: ir.OpView, threads: Threads) -> None:
    """Have thread 0 run an op, and no other."""
    assert threads.tid is not None
    with ir.InsertionPoint(op), op.location:
        first = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, threads.tid, value(0))
        branch = ir.scf.IfOp(first)
        with ir.InsertionPoint(branch.then_block):
            end = ir.scf.YieldOp([])
    op.operation.move_before(end.operation)

"""Which thread runs which tasks of a loop.

Each thread has a share of the tasks, in one run. It takes the next few of them at a time from a
counter, and when there are none left from the other threads' counters. So a thread that is slow,
because its core is or because something else runs there, has others do part of its share (Blumofe
and Leiserson 1999, "Scheduling multithreaded computations by work stealing"), while each core goes
through neighbouring tasks as long as it can.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metadef import ir
from metadef.passes._kernel_abi import ALIGNMENT

from .control import loop
from .index_math import Index, add, div, maximum, minimum, mul, rem, sub, value

#: A share is taken in about so many parts: the last one is what threads wait for.
PARTS = 64
# 64-bit words from one counter to the next, so that no two are in a cache line.
_SPACING = ALIGNMENT // 8


@dataclass(eq=False)
class Threads:
    """The thread that runs the code, and how many there are; None of both: it is alone.

    `tickets` are the counters, zeros when the kernel is called; `loops` have used some so far.
    """

    tid: ir.Value | None = None
    count: ir.Value | None = None
    tickets: ir.Value | None = None
    loops: int = 0

    def share(self, total: Index, owner: Index | None = None) -> tuple[Index, Index]:
        """Return this thread's run of so many tasks, or that of the thread `owner`."""
        if self.tid is None or self.count is None:
            return 0, total
        first = self.tid if owner is None else owner
        done = [div(mul(tid, total), self.count) for tid in (first, add(first, 1))]
        return done[0], done[1]

    def run(
        self,
        total: Index,
        task: Callable[[ir.Value], None],
        *,
        is_short: bool,
        parts: int | None = None,
    ) -> None:
        """Build the loop over this thread's tasks; a short one is not worth the counters."""

        def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            task(i)
            return []

        if is_short or self.tid is None or self.tickets is None:
            loop(*self.share(total), 1, [], one)
            return
        number, self.loops = self.loops, self.loops + 1

        def of_owner(turn: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            owner = rem(add(self.tid, turn), self.count)
            first, end = self.share(total, owner)
            part = maximum(div(sub(end, first), parts or PARTS), 1)
            at = mul(add(mul(number, self.count), owner), _SPACING)
            self._until(lambda: add(first, self._take(at, part)), end, part, one)
            return []

        loop(0, self.count, 1, [], of_owner)

    def _take(self, at: Index, part: Index) -> ir.Value:
        """Take the next `part` tasks from the counter `at`; return how many were taken before."""
        i64 = ir.IntegerType.get_signless(64)
        count = ir.arith.index_cast(i64, value(part))
        taken = ir.memref.atomic_rmw(ir.arith.AtomicRMWKind.addi, count, self.tickets, [value(at)])
        return ir.arith.index_cast(ir.IndexType.get(), taken)

    @staticmethod
    def _until(
        take: Callable[[], Index],
        end: Index,
        part: Index,
        one: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
    ) -> None:
        """Build a loop over the parts that `take` gives, until one starts at the end."""
        index, unknown = ir.IndexType.get(), ir.Location.unknown()
        op = ir.scf.WhileOp([index], [])
        with ir.InsertionPoint(op.before.blocks.append()):
            start = value(take())
            left = ir.arith.cmpi(ir.arith.CmpIPredicate.slt, start, value(end))
            ir.scf.ConditionOp(left, [start])
        block = op.after.blocks.append(index, arg_locs=[unknown])
        with ir.InsertionPoint(block):
            (start,) = block.arguments
            loop(start, minimum(add(start, part), end), 1, [], one)
            ir.scf.YieldOp([])

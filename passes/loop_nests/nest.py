"""A nest of stages as tasks over threads, and each task's box of loops.

The common loops of a nest are cut into boxes; boxes are numbered, and each thread takes a run of
numbers. In a box every stage runs one after another over its own dims.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metadef import ir

from .access import FlatBuffer
from .block import BlockEmitter
from .body import Lanes
from .boxes import box_sizes, task_order
from .cells import BlockCells, Vector, moved
from .control import branch, loop
from .grouping import Nest
from .index_math import Index, add, ceildiv, div, minimum, mul, rem, sub, value
from .memory import CellMemory, Point, masked, needs_known_tail
from .private_tiles import PrivateTile, localise, private_tiles
from .schedule import Schedule, Target, choose
from .stage import Stage


@dataclass(frozen=True)
class Threads:
    """Which share of the tasks is ours; None of both: all of them (serial code)."""

    tid: ir.Value | None
    count: ir.Value | None


@dataclass(eq=False)
class NestEmitter:
    """Builds the loops of nests at the insertion point; `entry` is the function's first block."""

    target: Target
    threads: Threads
    flat: Callable[[ir.Value], FlatBuffer]
    entry: ir.Block

    def emit(self, nest: Nest) -> None:
        """Build one nest: tasks, boxes, stages."""
        schedules = [choose(s, s.extents, self.target) for s in nest.stages]
        boxes = box_sizes(nest, schedules)
        order = task_order(nest, schedules, self.target)
        counts = [ceildiv(extent, size) for extent, size in boxes]
        total: Index = 1
        for count in counts:
            total = mul(total, count)
        private = private_tiles(nest, boxes, self.entry)

        def one_task(task: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            at: list[Index] = [0] * len(boxes)
            left: Index = task
            for c in reversed(order[1:]):
                at[c], left = rem(left, counts[c]), div(left, counts[c])
            if order:
                at[order[0]] = left
            self._split_tails(nest, schedules, boxes, counts, at, private)
            return []

        lower, upper = self._share(total)
        loop(lower, upper, 1, [], one_task)
        for tile in private.values():
            if tile.heap is not None:
                ir.memref.dealloc(tile.heap)

    def _share(self, total: Index) -> tuple[Index, Index]:
        """Return this thread's run of tasks."""
        if self.threads.tid is None or self.threads.count is None:
            return 0, total
        tid, count = self.threads.tid, self.threads.count
        return div(mul(tid, total), count), div(mul(add(tid, 1), total), count)

    def _split_tails(
        self,
        nest: Nest,
        schedules: list[Schedule],
        boxes: list[tuple[Index, int]],
        counts: list[Index],
        at: list[Index],
        private: dict[ir.Value, PrivateTile],
    ) -> None:
        """Build the box for whole tiles, and again for the last ones where they are smaller."""

        def build(c: int, sizes: list[Index]) -> None:
            if c == len(boxes):
                bases = [mul(i, size) for i, (_, size) in zip(at, boxes, strict=True)]
                self._box(nest, schedules, bases, sizes, private)
                return
            extent, size = boxes[c]
            tail: Index
            if isinstance(extent, int):
                tail = extent % size
                if not tail or extent < size:
                    build(c + 1, [*sizes, size])
                    return
            elif size == 1:
                build(c + 1, [*sizes, 1])
                return
            else:
                tail = minimum(sub(extent, mul(at[c], size)), size)
            last = ir.arith.cmpi(
                ir.arith.CmpIPredicate.slt, value(sub(extent, mul(at[c], size))), value(size)
            )
            choice = ir.scf.IfOp(last, has_else=True)
            with ir.InsertionPoint(choice.then_block):
                build(c + 1, [*sizes, tail])
                ir.scf.YieldOp([])
            with ir.InsertionPoint(choice.else_block):
                build(c + 1, [*sizes, size])
                ir.scf.YieldOp([])

        build(0, [])

    def _box(
        self,
        nest: Nest,
        schedules: list[Schedule],
        bases: list[Index],
        sizes: list[Index],
        private: dict[ir.Value, PrivateTile],
    ) -> None:
        """Run every stage over the box at `bases`."""
        by_flat = {self.flat(buffer).flat: tile for buffer, tile in private.items()}
        for s, stage in enumerate(nest.stages):
            bounds: list[tuple[Index, Index]] = [(0, e) for e in stage.extents]
            for c, dim in enumerate(nest.common[s]):
                bounds[dim] = (bases[c], sizes[c])
            local = localise(stage, nest.common[s], bases, by_flat)
            schedule = schedules[s]
            if len(nest.stages) > 1:
                schedule = choose(local, tuple(e for _, e in bounds), self.target)
            self._stage(local, schedule, bounds)

    def _stage(self, stage: Stage, schedule: Schedule, bounds: list[tuple[Index, Index]]) -> None:
        """Loop over the parallel dims of a stage in a box, blocks of rows and panels inside."""
        cells = BlockCells(stage, schedule, bounds, CellMemory(schedule, self.flat))
        emitter = BlockEmitter(cells, self.entry)
        inner = {schedule.lanes, schedule.row_dim} - {None}
        outer = [d for d in stage.parallel_dims if d not in inner]
        start = tuple(base for base, _ in bounds)

        def over(dims: list[int], point: Point) -> None:
            if not dims:
                self._panels(emitter, point)
                return
            d = dims[0]
            base, extent = bounds[d]
            if isinstance(extent, int) and extent == 1:
                over(dims[1:], point)
                return

            def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                over(dims[1:], moved(point, d, i))
                return []

            loop(base, add(base, extent), 1, [], one)

        over(outer, start)

    def _panels(self, emitter: BlockEmitter, point: Point) -> None:
        """Cover the lanes' dim: whole panels, then the vectors and lanes that are left."""
        schedule = emitter.cells.schedule
        d = schedule.lanes
        if d is None or schedule.over_reduction:
            self._rows(emitter, point, [Vector(0, Lanes(1))])
            return
        base, extent = emitter.cells.bounds[d]
        width, panel = schedule.width, schedule.panel
        full = [Vector(width * j, Lanes(width)) for j in range(schedule.vectors)]

        def at(i: Index) -> Point:
            return moved(point, d, i)

        whole = mul(div(extent, panel), panel)
        self._run(base, add(base, whole), panel, lambda i: self._rows(emitter, at(i), full))
        start, rest = add(base, whole), sub(extent, whole)
        known_tail = needs_known_tail(emitter.cells.stage, schedule)
        if isinstance(rest, int):
            vectors = full[: rest // width]
            if rest % width:
                vectors = [*vectors, Vector(width * len(vectors), masked(width, rest % width))]
            if vectors:
                self._rows(emitter, at(start), vectors)
            return
        singles = mul(div(rest, width), width)
        if schedule.vectors > 1:
            stop = add(start, singles)
            self._run(start, stop, width, lambda i: self._rows(emitter, at(i), full[:1]))
            start, rest = stop, sub(rest, singles)
        if known_tail:
            scalar = [Vector(0, Lanes(1))]
            self._run(start, add(start, rest), 1, lambda i: self._rows(emitter, at(i), scalar))
            return

        def tail() -> list[ir.Value]:
            self._rows(emitter, at(start), [Vector(0, masked(width, rest))])
            return []

        branch(ir.arith.cmpi(ir.arith.CmpIPredicate.sgt, value(rest), value(0)), [], tail)

    def _rows(self, emitter: BlockEmitter, point: Point, vectors: list[Vector]) -> None:
        """Cover the rows' dim: whole blocks, then smaller ones."""
        schedule = emitter.cells.schedule
        d = schedule.row_dim
        if d is None:
            emitter.emit(point, 1, vectors)
            return
        base, extent = emitter.cells.bounds[d]

        def at(i: Index) -> Point:
            return moved(point, d, i)

        start, rest = base, extent
        ladder = [schedule.rows, 4, 1] if schedule.rows > 4 else [schedule.rows, 1]
        for rows in ladder if not isinstance(extent, int) else [schedule.rows]:
            whole = mul(div(rest, rows), rows)
            stop = add(start, whole)
            self._run(start, stop, rows, lambda i, rows=rows: emitter.emit(at(i), rows, vectors))  # type: ignore[misc]
            start, rest = stop, sub(rest, whole)
        if isinstance(rest, int) and rest:
            emitter.emit(at(start), rest, vectors)

    def _run(self, start: Index, stop: Index, step: int, body: Callable[[Index], None]) -> None:
        """Loop, or build the body once when there is exactly one turn, or nothing for none."""
        if isinstance(start, int) and isinstance(stop, int):
            if stop <= start:
                return
            if stop - start <= step:
                body(start)
                return
        if not isinstance(start, int) and not isinstance(stop, int):
            turns = _turns(start, stop, step)
            if turns is not None and turns <= 1:
                if turns == 1:
                    body(start)
                return

        def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            body(i)
            return []

        loop(start, stop, step, [], one)


def _turns(start: ir.Value, stop: ir.Value, step: int) -> int | None:
    """Return the trip count when `stop` is `start` plus a constant."""
    owner = stop.owner
    if isinstance(owner, ir.Block) or owner.operation.name != "arith.addi":
        return 0 if start == stop else None
    lhs, rhs = owner.operation.operands
    constant = rhs.owner
    if lhs != start or isinstance(constant, ir.Block):
        return None
    if constant.operation.name != "arith.constant":
        return None
    return -(-ir.IntegerAttr(constant.operation.attributes["value"]).value // step)

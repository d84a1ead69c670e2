"""A nest of stages as tasks over threads, and each task's box of loops.

The common loops of a nest are cut into boxes; boxes are numbered, and are the tasks
that threads share. In a box every stage runs one after another over its own dims.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from metadef import ir
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .access import Access, FlatBuffer
from .block import BlockEmitter, Chunk
from .blocking import Blocking, rows_in, rows_size, sums_in, sums_size
from .body import Lanes
from .boxes import even_sizes, tail_units
from .cells import BlockCells, Vector, moved
from .control import branch, loop
from .decisions import alone
from .grouping import Nest
from .index_math import (
    Index,
    add,
    ceildiv,
    div,
    equal,
    minimum,
    mul,
    rem,
    rounded_down,
    sub,
    value,
)
from .legality import decide_legally
from .memory import CellMemory, Point, masked, needs_known_tail
from .padding import edge_taps, whole_outputs
from .prefetch import NextRows, Prefetch, next_box, next_panel, next_rows
from .private_tiles import PrivateTile, localise, private_tile, private_tiles
from .row_copy import copy_rows
from .schedule import Schedule, Target, choose
from .stage import Inside, Stage
from .tasks import Threads
from .window_tile import WindowTile

# A nest of fewer points is over before another thread could help.
_FEW_POINTS = 1 << 18


@dataclass(eq=False)
class NestEmitter:
    """Builds the loops of nests at the insertion point; `entry` is the function's first block.

    The flat buffers in `streamed` are stored past the cache.
    """

    target: Target
    threads: Threads
    flat: Callable[[ir.Value], FlatBuffer]
    entry: ir.Block
    streamed: frozenset[ir.Value] = frozenset()

    def emit(self, nest: Nest, wanted: KernelChoice = BY_RULE) -> bool:
        """Build one nest: tasks, boxes, stages; tell whether all that loops has lanes.

        Raises:
            MetadefError: what is `wanted` of the nest cannot be.
        """
        decisions = decide_legally(nest, self.target, wanted)
        if decisions.windows is not None:
            self._windows_from_tiles(decisions.windows, wanted.parts)
            return True
        schedules, blocking, boxes = decisions.schedules, decisions.blocking, decisions.boxes
        order = decisions.order
        counts = [ceildiv(extent, size) for extent, size in boxes]
        sizes = even_sizes(nest, schedules, boxes, counts)
        units = tail_units(nest, schedules, boxes)
        private = private_tiles(nest, boxes, self.entry)
        sums, rows = self._chunk_tiles(nest.stages[0], blocking)

        following = (order[-1], sizes[order[-1]]) if order else None

        def box(bases: list[Index], turns: list[Index]) -> None:
            if blocking is not None:
                self._product(nest.stages[0], schedules[0], blocking, bases, turns, sums, rows)
            else:
                self._box(nest, schedules, bases, turns, private, following, decisions.main, wanted)

        extents = [extent for extent, _ in boxes]
        self._tasks(nest.stages, extents, sizes, counts, order, units, box, wanted.parts)
        for tile in [*private.values(), sums, rows]:
            if tile is not None and tile.heap is not None:
                ir.memref.dealloc(tile.heap)
        return all(
            schedule.lanes is not None or all(extent == 1 for extent in stage.extents)
            for stage, schedule in zip(nest.stages, schedules, strict=True)
        )

    def _windows_from_tiles(self, windows: WindowTile, parts: int | None) -> None:
        """Build the nest of a stage that reads the windows of each box in a tile."""
        stage, dims = windows.stage, windows.stage.parallel_dims
        tile = windows.cleared(self.entry)
        extents = [stage.extents[d] for d in dims]
        sizes: list[Index] = [windows.box[d] for d in dims]
        counts = [ceildiv(e, size) for e, size in zip(extents, sizes, strict=True)]

        def box(bases: list[Index], turns: list[Index]) -> None:
            bounds: list[tuple[Index, Index]] = [(0, e) for e in stage.extents]
            for d, base, size in zip(dims, bases, turns, strict=True):
                bounds[d] = (base, size)
            self._stage(windows.fill(tile.flat, bounds), windows.schedule, bounds)

        order = list(range(len(dims)))
        units: list[int | None] = [None] * len(dims)
        self._tasks([stage], extents, sizes, counts, order, units, box, parts)
        if tile.heap is not None:
            ir.memref.dealloc(tile.heap)

    def _tasks(
        self,
        stages: list[Stage],
        extents: list[Index],
        sizes: list[Index],
        counts: list[Index],
        order: list[int],
        units: list[int | None],
        box: Callable[[list[Index], list[Index]], None],
        parts: int | None,
    ) -> None:
        """Loop over this thread's boxes, numbered with the last of `order` fastest."""
        total: Index = 1
        for count in counts:
            total = mul(total, count)

        def one_task(task: ir.Value) -> None:
            at: list[Index] = [0] * len(extents)
            left: Index = task
            for c in reversed(order[1:]):
                at[c], left = rem(left, counts[c]), div(left, counts[c])
            if order and counts[order[0]] != 1:
                at[order[0]] = left
            self._split_tails(extents, sizes, units, at, box)

        is_short = _is_short(stages, total, self.target.cores)
        self.threads.run(total, one_task, is_short=is_short, parts=parts)

    def _chunk_tiles(
        self, stage: Stage, blocking: Blocking | None
    ) -> tuple[PrivateTile | None, PrivateTile | None]:
        """Return memory for a box's sums, where the output cannot hold them, and copied rows."""
        sums = rows = None
        if blocking is not None and blocking.sums_apart:
            size = sums_size(stage, blocking.box)
            sums = private_tile(stage.outputs[0].element, size, self.entry)
        if blocking is not None and blocking.copied is not None:
            x = stage.inputs[blocking.copied]
            assert isinstance(x, Access)
            rows = private_tile(x.element, rows_size(stage, blocking), self.entry)
        return sums, rows

    def _split_tails(
        self,
        extents: list[Index],
        sizes: list[Index],
        units: list[int | None],
        at: list[Index],
        box: Callable[[list[Index], list[Index]], None],
    ) -> None:
        """Build the box for whole tiles, and again for the last ones where they are smaller, unless
        only the number of their `units` differs."""
        bases = [mul(i, size) for i, size in zip(at, sizes, strict=True)]

        def build(c: int, turns: list[Index]) -> None:
            if c == len(extents):
                box(bases, turns)
                return
            extent, size = extents[c], sizes[c]
            if not isinstance(extent, int) or not isinstance(size, int):
                left = 1 if size == 1 else minimum(sub(extent, bases[c]), size)
                build(c + 1, [*turns, left])
                return
            tail = extent % size
            if not tail or extent < size:
                build(c + 1, [*turns, size])
                return
            unit = units[c]
            if unit is not None:
                left = sub(extent // unit, mul(at[c], size // unit))
                build(c + 1, [*turns, mul(minimum(left, size // unit), unit)])
                return
            last = ir.arith.cmpi(
                ir.arith.CmpIPredicate.slt, value(sub(extent, bases[c])), value(size)
            )
            choice = ir.scf.IfOp(last, has_else=True)
            with ir.InsertionPoint(choice.then_block):
                build(c + 1, [*turns, tail])
                ir.scf.YieldOp([])
            with ir.InsertionPoint(choice.else_block):
                build(c + 1, [*turns, size])
                ir.scf.YieldOp([])

        build(0, [])

    def _box(
        self,
        nest: Nest,
        schedules: list[Schedule],
        bases: list[Index],
        sizes: list[Index],
        private: dict[ir.Value, PrivateTile],
        following: tuple[int, Index] | None,
        main: Stage,
        wanted: KernelChoice,
    ) -> None:
        """Run every stage over the box at `bases`; `following` is the loop that goes on to the next
        box, and its step. What is `wanted` is so of the stage `main`."""
        by_flat = {self.flat(buffer).flat: tile for buffer, tile in private.items()}
        for s, stage in enumerate(nest.stages):
            bounds: list[tuple[Index, Index]] = [(0, e) for e in stage.extents]
            for c, dim in enumerate(nest.common[s]):
                bounds[dim] = (bases[c], sizes[c])
            local = localise(stage, nest.common[s], bases, by_flat)
            schedule = schedules[s]
            if len(nest.stages) > 1:
                extents = tuple(e for _, e in bounds)
                own = wanted if stage is main else BY_RULE
                schedule = choose(local, extents, alone(self.target), own, evenly=True)
            ahead = (
                next_box(nest.stages[: s + 1], nest.common[: s + 1], *following)
                if following
                else {}
            )
            self._stage(local, schedule, bounds, ahead=ahead)

    def _product(
        self,
        stage: Stage,
        schedule: Schedule,
        blocking: Blocking,
        bases: list[Index],
        sizes: list[Index],
        held: PrivateTile | None,
        rows: PrivateTile | None,
    ) -> None:
        """Run a product over the box at `bases`, chunk by chunk of its reduction."""
        bounds: list[tuple[Index, Index]] = [(0, e) for e in stage.extents]
        for d, base, size in zip(stage.parallel_dims, bases, sizes, strict=True):
            bounds[d] = (base, size)
        if not blocking.chunks:
            found = (
                next_panel(stage, schedule, blocking.box, bounds),
                next_rows(stage, schedule, bounds),
            )
            ahead = tuple(p for p in found if p is not None)
            self._stage(stage, schedule, bounds, prefetch=ahead)
            return
        sums = stage.outputs[0]
        if held is not None:
            assert schedule.lanes is not None
            sums = sums_in(stage, blocking.box, bounds, held.flat, schedule.lanes)
        yes = ir.arith.constant(ir.IntegerType.get_signless(1), 1)

        def over(dims: list[int], first: ir.Value, last: ir.Value) -> None:
            if not dims:
                near = (
                    stage if rows is None else _with_rows(stage, schedule, blocking, bounds, rows)
                )
                ahead = next_panel(stage, schedule, blocking.box, bounds)
                fetches = (ahead,) if ahead is not None else ()
                self._stage(near, schedule, bounds, Chunk(first, last, sums), fetches)
                return
            d, size = dims[0], blocking.chunks[dims[0]]
            base, extent = bounds[d]
            end = add(base, extent)
            even = isinstance(extent, int) and extent % size == 0

            def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                left = sub(end, i)
                bounds[d] = (i, size if even else minimum(left, size))
                starts = ir.arith.cmpi(ir.arith.CmpIPredicate.eq, i, value(base))
                ends = ir.arith.cmpi(ir.arith.CmpIPredicate.sle, value(left), value(size))
                over(dims[1:], ir.arith.andi(first, starts), ir.arith.andi(last, ends))
                return []

            loop(base, end, size, [], one)
            bounds[d] = (base, extent)

        over(list(blocking.chunks), yes, yes)

    def _stage(
        self,
        stage: Stage,
        schedule: Schedule,
        bounds: list[tuple[Index, Index]],
        chunk: Chunk | None = None,
        prefetch: tuple[Prefetch | NextRows, ...] = (),
        ahead: Mapping[int, Index] | None = None,
    ) -> None:
        """Loop over the parallel dims of a stage in a box, blocks of rows and panels inside."""
        past = self.streamed if not stage.reduction_dims else frozenset()
        memory = CellMemory(schedule, self.flat, past, self.target.vector_bits // 8)
        cells = BlockCells(stage, schedule, bounds, memory, ahead or {})
        emitter = BlockEmitter(cells, self.entry, chunk, prefetch)
        inner = {schedule.lanes, schedule.row_dim} - {None}
        outer = [d for d in stage.parallel_dims if d not in inner]
        start = tuple(base for base, _ in bounds)

        def over(dims: list[int], point: Point, body: Callable[[Point], None]) -> None:
            if not dims:
                body(point)
                return
            d = dims[0]
            base, extent = bounds[d]
            if isinstance(extent, int) and extent == 1:
                over(dims[1:], moved(point, d, base), body)
                return

            def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
                over(dims[1:], moved(point, d, i), body)
                return []

            loop(base, add(base, extent), 1, [], one)

        def rows(point: Point, vectors: list[Vector]) -> None:
            self._rows(emitter, point, vectors)

        if stage.reduction_dims and schedule.row_dim is not None and _has_panels(stage, schedule):
            # Panels outside: one stays in the first cache level while all rows of the box pass.
            self._panels(
                emitter, start, lambda p, vectors: over(outer, p, lambda q: rows(q, vectors))
            )
        else:
            over(outer, start, lambda p: self._panels(emitter, p, rows))

    def _panels(
        self,
        emitter: BlockEmitter,
        point: Point,
        rows: Callable[[Point, list[Vector]], None],
    ) -> None:
        """Cover the lanes' dim: whole panels, then the vectors and lanes that are left."""
        schedule = emitter.cells.schedule
        d = schedule.lanes
        if d is None or schedule.over_reduction:
            rows(point, [Vector(0, Lanes(1))])
            return
        base, extent = emitter.cells.bounds[d]
        width, panel = schedule.width, schedule.panel
        full = [Vector(width * j, Lanes(width)) for j in range(schedule.vectors)]

        def at(i: Index) -> Point:
            return moved(point, d, i)

        whole = rounded_down(extent, panel)
        self._run(base, add(base, whole), panel, lambda i: rows(at(i), full))
        start, rest = add(base, whole), sub(extent, whole)
        known_tail = needs_known_tail(emitter.cells.stage, schedule)
        if isinstance(rest, int):
            vectors = full[: rest // width]
            if (
                rest % width
                and isinstance(extent, int)
                and extent >= width
                and emitter.may_repeat()
            ):
                vectors = [*vectors, Vector(rest - width, Lanes(width))]
            elif rest % width:
                vectors = [*vectors, Vector(width * len(vectors), masked(width, rest % width))]
            if vectors:
                rows(at(start), vectors)
            return
        singles = rounded_down(rest, width)
        if schedule.vectors > 1:
            stop = add(start, singles)
            self._run(start, stop, width, lambda i: rows(at(i), full[:1]))
            start, rest = stop, sub(rest, singles)
        if known_tail:
            scalar = [Vector(0, Lanes(1))]
            self._run(start, add(start, rest), 1, lambda i: rows(at(i), scalar))
            return

        def tail() -> list[ir.Value]:
            rows(at(start), [Vector(0, masked(width, rest))])
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

        def block(i: Index, rows: int) -> None:
            emitter.emit(at(i), rows, vectors)

        stage = emitter.cells.stage
        window = next((w for w in stage.inside if w.output == d), None)

        def blocks(start: Index, stop: Index, rows: int) -> None:
            if window is None:
                self._run(start, stop, rows, lambda i: block(i, rows))
            else:
                self._windows(emitter.cells, window, start, stop, rows, block)

        if isinstance(extent, int):
            for rows, count in _row_blocks(extent, schedule.rows, bool(stage.reduction_dims)):
                blocks(base, add(base, rows * count), rows)
                base = add(base, rows * count)
            return
        if isinstance(stage.extents[d], int):
            # The last box has fewer: `tail_units` has seen to it that they are even blocks as well.
            rows = schedule.rows
            stop = add(base, extent)
            if equal(rounded_down(extent, rows), extent):
                blocks(base, stop, rows)
                return
            fewer = sub(mul(ceildiv(extent, rows), rows), extent)
            middle = sub(stop, mul(fewer, rows - 1))
            blocks(base, middle, rows)
            blocks(middle, stop, rows - 1)
            return
        for rows in _halves(schedule.rows):
            whole = rounded_down(extent, rows)
            blocks(base, add(base, whole), rows)
            base, extent = add(base, whole), sub(extent, whole)

    def _windows(
        self,
        cells: BlockCells,
        window: Inside,
        start: Index,
        stop: Index,
        rows: int,
        block: Callable[[Index, int], None],
    ) -> None:
        """Cover rows that are windows of an input, some of them across its edges.

        Blocks across an edge are built each for itself if it is known where they are, or else row
        by row.
        """
        first, end = whole_outputs(window, cells.stage)

        def guarded(i: Index) -> None:
            if rows == 1 or (isinstance(i, int) and first <= i and i + rows <= end):
                block(i, rows)
                return
            if isinstance(i, int):
                self._run(i, i + rows, 1, lambda j: block(j, 1))
                return
            above = ir.arith.cmpi(ir.arith.CmpIPredicate.sge, value(i), value(first))
            below = ir.arith.cmpi(ir.arith.CmpIPredicate.sle, value(add(i, rows)), value(end))
            choice = ir.scf.IfOp(ir.arith.andi(above, below), has_else=True)
            with ir.InsertionPoint(choice.then_block):
                block(i, rows)
                ir.scf.YieldOp([])
            with ir.InsertionPoint(choice.else_block):
                self._run(i, add(i, rows), 1, lambda j: block(j, 1))
                ir.scf.YieldOp([])

        if not isinstance(start, int) or not isinstance(stop, int):
            self._run(start, stop, rows, guarded)
            return
        if edge_taps(window, cells.bounds) is None:
            self._run(start, stop, rows, guarded)
            return
        turns = range(start, stop, rows)
        inner = [i for i in turns if first <= i and i + rows <= end]
        for i in turns:
            if i not in inner:
                block(i, rows)
            elif i == inner[0]:
                self._run(i, inner[-1] + rows, rows, lambda i: block(i, rows))

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


def _is_short(stages: list[Stage], tasks: Index, cores: int) -> bool:
    """Tell whether threads would gain nothing if they took tasks from one another."""
    if isinstance(tasks, int) and tasks <= cores:
        return True
    points = 0
    for stage in stages:
        extents = [e for e in stage.extents if isinstance(e, int)]
        if len(extents) < len(stage.extents):
            return False
        points += prod(extents)
    return points < _FEW_POINTS


def _with_rows(
    stage: Stage,
    schedule: Schedule,
    blocking: Blocking,
    bounds: list[tuple[Index, Index]],
    tile: PrivateTile,
) -> Stage:
    """Copy the rows of a box and chunk; return the stage that reads the copy."""
    assert blocking.copied is not None
    x = stage.inputs[blocking.copied]
    assert isinstance(x, Access)
    near, dims = rows_in(stage, blocking, bounds, tile.flat)
    copy_rows(x, near, dims, bounds, schedule.width, stage.inside)
    inputs = [near if k == blocking.copied else y for k, y in enumerate(stage.inputs)]
    return replace(stage, inputs=inputs)


def _has_panels(stage: Stage, schedule: Schedule) -> bool:
    """Tell whether rows share what they read along the lanes, and lanes what they read in rows."""
    lanes, row_dim = schedule.lanes, schedule.row_dim
    assert lanes is not None and row_dim is not None
    inputs = [x for x in stage.inputs if isinstance(x, Access)]
    return any(x.moves(row_dim) and not x.moves(lanes) for x in inputs)


def _row_blocks(extent: int, rows: int, even: bool) -> list[tuple[int, int]]:
    """Return (rows, number) of the blocks of at most `rows` that cover `extent`."""
    blocks = [(rows, extent // rows), (extent % rows, 1)]
    if even and extent:
        count = -(-extent // rows)
        most = -(-extent // count)
        fewer = most * count - extent
        blocks = [(most, count - fewer), (most - 1, fewer)]
    return [(rows, count) for rows, count in blocks if rows and count]


def _halves(rows: int) -> list[int]:
    """Return `rows`, half of it (rounded up), and so on to 1: few blocks for any number of rows."""
    return [rows] if rows == 1 else [rows, *_halves(-(-rows // 2))]


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

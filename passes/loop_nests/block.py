"""One register block: rows by vectors of one stage, its reduction, and its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from metadef import ir

from .access import Access
from .body import HEAVY_BODY_OPS, Lanes, Val, constant_splat, evaluate_body, instructions
from .cells import BlockCells, Step, Vector, moved
from .control import choose, loop
from .index_math import Index, value
from .lane_folds import LaneFold
from .memory import Cell, Corner, Point
from .padding import edge_taps, is_whole, rows_inside
from .prefetch import NextRows, Prefetch, fetch
from .schedule import combiners
from .stage import point_add


@dataclass(frozen=True)
class Chunk:
    """A part of a reduction: whether it is the first or the last (i1), and where the sums are
    between the parts."""

    first: ir.Value
    last: ir.Value
    sums: Access


@dataclass(frozen=True)
class BlockEmitter:
    """Builds register blocks of one stage at the insertion point.

    Stack space is taken at the start of `entry`. A float sum may be made chunk by chunk; `prefetch`
    says what to fetch meanwhile.
    """

    cells: BlockCells
    entry: ir.Block
    chunk: Chunk | None = None
    prefetch: tuple[Prefetch | NextRows, ...] = ()

    def may_repeat(self) -> bool:
        """Tell whether cells may be computed twice, so that a last vector reaches back to be whole.

        It must not start from what the first time stored, nor read it: only what moves with the
        lanes may be in the same memory as the result. To mask a store takes some CPUs as long as
        ten of them.
        """
        stage, lanes = self.cells.stage, self.cells.schedule.lanes
        assert lanes is not None
        if not stage.reduction_dims or self.chunk is not None or any(i is None for i in stage.init):
            return False
        if any(x.is_nonlinear(lanes) for x in stage.accesses()):
            return False
        if not all(stage.accumulates(k) for k in range(len(stage.outputs))):
            return False
        epilogue = stage.epilogue
        if epilogue is None:
            return True
        if instructions(epilogue.body) > HEAVY_BODY_OPS:
            return False
        others = [x for k, x in enumerate(epilogue.inputs) if k != stage.epilogue_input]
        results = epilogue.body.arguments[len(epilogue.inputs) :]
        reads = any(isinstance(x, Access) and x.moves(lanes) for x in others)
        return not reads and not any(list(v.uses) for v in results)

    def emit(self, point: Point, rows: int, vectors: Sequence[Vector]) -> None:
        """Compute the block at `point`: `rows` rows by `vectors`."""
        if self.cells.schedule.over_reduction:
            results = LaneFold(self.cells).reduce(point, rows)
            vectors = [Vector(0, Lanes(1))]
        else:
            results = self._reduce(point, rows, vectors)
        self._finish(point, rows, vectors, results)

    def _reduce(self, point: Point, rows: int, vectors: Sequence[Vector]) -> list[list[ir.Value]]:
        """Run the reduction loops with the running values in registers; return them by output."""
        stage = self.cells.stage
        outputs = [k for k in range(len(stage.outputs)) if stage.accumulates(k)]
        if not stage.reduction_dims:
            self.cells.inner(point, rows, vectors, {})
            return []
        cells = [(i, v) for i in range(rows) for v in vectors]

        plain_sums = len(outputs) == len(stage.outputs) and all(
            c is not None and c.op == "arith.addf" for c in combiners(stage)
        )
        if self.chunk is None:
            start = [self.cells.start(k, point, i, v) for k in outputs for i, v in cells]
        else:
            types = [v.lanes.type(stage.outputs[k].element) for k in outputs for _, v in cells]
            start = [constant_splat(t, 0.0) for t in types]
            # A chunk of unknown size is short enough without being cut up again.
            plain_sums = all(isinstance(self.cells.bounds[d][1], int) for d in stage.reduction_dims)
        fetches = [p.of_block(point) for p in self.prefetch]
        self._fetch_ends(point, rows, vectors)

        def step_of(rows: int) -> Step:
            count = rows * len(vectors)

            def step(at: Point, carried: list[ir.Value]) -> list[ir.Value]:
                for fetch_at in fetches:
                    fetch_at(at)
                running = {k: carried[n * count : (n + 1) * count] for n, k in enumerate(outputs)}
                return self.cells.inner(at, rows, vectors, running)

            return step

        final = self._loops(point, rows, start, step_of, plain_sums)
        if self.chunk is not None:
            final = self._added_up(self.chunk, point, cells, final)
        return [final[n * len(cells) : (n + 1) * len(cells)] for n in range(len(outputs))]

    def _fetch_ends(self, point: Point, rows: int, vectors: Sequence[Vector]) -> None:
        """Fetch what is read row by row after the reduction, and would be waited for there."""
        schedule, epilogue = self.cells.schedule, self.cells.stage.epilogue
        if schedule.row_dim is None or schedule.lanes is None:
            return
        read = [] if self.chunk is None else [self.chunk.sums]
        if epilogue is not None:
            held = self.cells.stage.epilogue_input
            inputs = [*epilogue.inputs[:held], *epilogue.inputs[held + 1 :]]
            read += [x for x in inputs if isinstance(x, Access)]
        corner = Corner(point)
        for x in read:
            if x.moves(schedule.row_dim) and x.strides[schedule.lanes] == 1:
                cells = [Cell(corner, i, v.offset) for i in range(rows) for v in vectors]
                for at in cells[:: schedule.vectors]:
                    fetch(x.buffer, self.cells.memory.address(x, at), locality=3)

    def _loops(
        self,
        point: Point,
        rows: int,
        start: list[ir.Value],
        step_of: Callable[[int], Step],
        sums: bool,
    ) -> list[ir.Value]:
        """Run the reduction loops; each tap at an edge by itself, for the rows that it reaches."""
        stage, cells = self.cells.stage, self.cells
        dims, row_dim = stage.reduction_dims, cells.schedule.row_dim
        across = [w for w in stage.inside if rows == 1 or w.output != row_dim]
        along = next((w for w in stage.inside if w not in across), None)
        if along is None or is_whole(along, point[along.output], rows, stage):
            return cells.loops(dims, point, start, step_of(rows), sums, across)
        dims = [d for d in dims if d != along.tap]
        output, taps = point[along.output], edge_taps(along, cells.bounds)
        assert isinstance(output, int) and taps is not None, "an edge at a known place"
        carried = list(start)
        for (first, count), alike in groupby(
            taps, lambda tap: rows_inside(along, output, rows, tap)
        ):
            if count:
                per_row = len(start) // rows
                reached = slice(first * per_row, (first + count) * per_row)
                at, step = moved(point, along.output, output + first), step_of(count)

                def one_tap(
                    tap: Index,
                    held: list[ir.Value],
                    at: Point = at,
                    step: Step = step,
                ) -> list[ir.Value]:
                    return cells.loops(dims, moved(at, along.tap, tap), held, step, sums, across)

                carried[reached] = _over(list(alike), carried[reached], one_tap)
        return carried

    def _added_up(
        self, chunk: Chunk, point: Point, cells: list[tuple[int, Vector]], sums: list[ir.Value]
    ) -> list[ir.Value]:
        """Add the sums of a chunk to those of the chunks before, or to the start values."""
        corner = Corner(point)

        def initial() -> list[ir.Value]:
            return [
                ir.arith.addf(self.cells.start(0, point, i, v), x)
                for (i, v), x in zip(cells, sums, strict=True)
            ]

        def later() -> list[ir.Value]:
            memory = self.cells.memory
            held = [memory.load(chunk.sums, Cell(corner, i, v.offset), v.lanes) for i, v in cells]
            return [
                ir.arith.addf(x.vector(v.lanes), y)
                for x, (_, v), y in zip(held, cells, sums, strict=True)
            ]

        return choose(chunk.first, [v.type for v in sums], initial, later)

    def _finish(
        self, point: Point, rows: int, vectors: Sequence[Vector], results: list[list[ir.Value]]
    ) -> None:
        """Store the reduced values, through the epilogue if there is one."""
        stage = self.cells.stage
        accumulated = [x for k, x in enumerate(stage.outputs) if stage.accumulates(k)]
        if not stage.reduction_dims:
            return
        if stage.epilogue is None:
            for x, cells in zip(accumulated, results, strict=True):
                self._store(x, point, rows, vectors, cells)
            return
        if self.chunk is None:
            self._epilogue(point, rows, vectors, results[0])
            return
        sums = self.chunk.sums

        def epilogue() -> list[ir.Value]:
            self._epilogue(point, rows, vectors, results[0])
            return []

        def keep() -> list[ir.Value]:
            self._store(sums, point, rows, vectors, results[0])
            return []

        choose(self.chunk.last, [], epilogue, keep)

    def _store(
        self,
        x: Access,
        point: Point,
        rows: int,
        vectors: Sequence[Vector],
        cells: Sequence[ir.Value],
    ) -> None:
        corner = Corner(point)
        for i in range(rows):
            for j, v in enumerate(vectors):
                result = Val(
                    "vector" if v.lanes.width > 1 else "uniform", cells[i * len(vectors) + j]
                )
                self.cells.memory.store(x, Cell(corner, i, v.offset), result, v.lanes)

    def _epilogue(
        self, point: Point, rows: int, vectors: Sequence[Vector], cells: list[ir.Value]
    ) -> None:
        stage = self.cells.stage
        assert stage.epilogue is not None
        heavy = instructions(stage.epilogue.body) > HEAVY_BODY_OPS
        if heavy and rows > 1 and self.cells.schedule.row_dim is not None:
            self._epilogue_loop(point, rows, vectors, cells)
            return
        corner = Corner(point)
        for i in range(rows):
            for j, v in enumerate(vectors):
                self._epilogue_cell(Cell(corner, i, v.offset), v, cells[i * len(vectors) + j])

    def _epilogue_loop(
        self, point: Point, rows: int, vectors: Sequence[Vector], cells: list[ir.Value]
    ) -> None:
        """Put the block on the stack and run the epilogue in a loop over its rows.

        The whole vectors of a row go as one: each alone would wait for its own results.
        """
        row_dim = self.cells.schedule.row_dim
        assert row_dim is not None
        n, width = len(vectors), vectors[0].lanes.width
        element = ir.VectorType(cells[0].type).element_type if width > 1 else cells[0].type
        type_ = ir.MemRefType.get([rows, n * width], element)
        # At the function's entry: an alloca inside a loop would grow the stack at each turn.
        with ir.InsertionPoint.at_block_begin(self.entry):
            stack = ir.memref.alloca(type_, [], [], alignment=64)
        for i in range(rows):
            for j in range(n):
                at = [value(i), value(j * width)]
                if width > 1:
                    ir.vector.store(cells[i * n + j], stack, at)
                else:
                    ir.memref.store(cells[i * n + j], stack, at)
        joined = _joined(vectors)

        def one_row(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            corner = Corner(point_add(point, row_dim, i))
            for v in joined:
                at = [i, value(v.offset)]
                held = (
                    ir.vector.load(v.lanes.type(element), stack, at)
                    if v.lanes.width > 1
                    else ir.memref.load(stack, at)
                )
                self._epilogue_cell(Cell(corner, 0, v.offset), v, held)
            return []

        loop(0, rows, 1, [], one_row)

    def _epilogue_cell(self, at: Cell, v: Vector, result: ir.Value) -> None:
        memory, stage = self.cells.memory, self.cells.stage
        epilogue = stage.epilogue
        assert epilogue is not None
        arguments: list[Val] = []
        for k, x in enumerate(epilogue.inputs):
            if k == stage.epilogue_input:
                arguments.append(Val("vector" if v.lanes.width > 1 else "uniform", result))
            elif isinstance(x, Access):
                arguments.append(memory.load(x, at, v.lanes))
            else:
                arguments.append(Val("uniform", x))
        for k, x in enumerate(epilogue.outputs):
            argument = epilogue.body.arguments[len(epilogue.inputs) + k]
            used = bool(list(argument.uses))
            zero = Val("uniform", constant_splat(x.element, 0))
            arguments.append(memory.load(x, at, v.lanes) if used else zero)
        yielded = evaluate_body(
            epilogue.body,
            arguments,
            lambda d: memory.index(epilogue, d, at),
            memory.gather,
            v.lanes,
        )
        for x, y in zip(epilogue.outputs, yielded, strict=True):
            memory.store(x, at, y, v.lanes)


def _over(
    taps: list[int],
    carried: list[ir.Value],
    body: Callable[[Index, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Run `body` for each of some taps that follow one another."""
    if len(taps) == 1:
        return body(taps[0], carried)
    return loop(taps[0], taps[-1] + 1, 1, carried, body)


def _joined(vectors: Sequence[Vector]) -> list[Vector]:
    """Return the vectors of a row with the whole ones, a power of two of them, as one."""
    whole = [v for v in vectors if v.lanes.mask is None]
    if len(whole) < 2 or len(whole) & (len(whole) - 1):
        return list(vectors)
    wide = Vector(whole[0].offset, Lanes(len(whole) * whole[0].lanes.width))
    return [wide, *vectors[len(whole) :]]

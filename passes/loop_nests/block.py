"""One register block: rows by vectors of one stage, its reduction, and its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadef import ir

from .access import Access
from .body import HEAVY_BODY_OPS, Lanes, Val, constant_splat, evaluate_body, instructions
from .cells import BlockCells, Step, Vector, moved
from .control import loop
from .index_math import value
from .lane_folds import LaneFold
from .memory import Cell, Corner, Point
from .padding import edge_taps, is_whole, rows_inside
from .prefetch import NextRows, Prefetch
from .schedule import combiners
from .stage import point_add


@dataclass(frozen=True)
class BlockEmitter:
    """Builds register blocks of one stage at the insertion point.

    Stack space is taken at the start of `entry`. With `adds_up` the sums are added to what the
    output holds; `prefetch` says what to fetch meanwhile.
    """

    cells: BlockCells
    entry: ir.Block
    adds_up: bool = False
    prefetch: tuple[Prefetch | NextRows, ...] = ()

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

        def held() -> list[ir.Value]:
            return [self.cells.start(k, point, i, v) for k in outputs for i, v in cells]

        if self.adds_up:
            types = [v.lanes.type(stage.outputs[k].element) for k in outputs for _, v in cells]
            start = [constant_splat(t, 0.0) for t in types]
        else:
            start = held()
        sums = (
            not self.adds_up
            and all(c is not None and c.op == "arith.addf" for c in combiners(stage))
            and len(outputs) == len(stage.outputs)
        )

        fetches = [p.of_block(point) for p in self.prefetch]

        def step_of(rows: int) -> Step:
            count = rows * len(vectors)

            def step(at: Point, carried: list[ir.Value]) -> list[ir.Value]:
                for fetch in fetches:
                    fetch(at)
                running = {k: carried[n * count : (n + 1) * count] for n, k in enumerate(outputs)}
                return self.cells.inner(at, rows, vectors, running)

            return step

        final = self._loops(point, rows, start, step_of, sums)
        if self.adds_up:
            final = [ir.arith.addf(a, b) for a, b in zip(held(), final, strict=True)]
        return [final[n * len(cells) : (n + 1) * len(cells)] for n in range(len(outputs))]

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
        for tap in taps:
            first, count = rows_inside(along, output, rows, tap)
            if count:
                at = moved(moved(point, along.output, output + first), along.tap, tap)
                per_row = len(start) // rows
                reached = slice(first * per_row, (first + count) * per_row)
                step = step_of(count)
                carried[reached] = cells.loops(dims, at, carried[reached], step, sums, across)
        return carried

    def _finish(
        self, point: Point, rows: int, vectors: Sequence[Vector], results: list[list[ir.Value]]
    ) -> None:
        """Store the reduced values, through the epilogue if there is one."""
        stage = self.cells.stage
        accumulated = [x for k, x in enumerate(stage.outputs) if stage.accumulates(k)]
        if not stage.reduction_dims:
            return
        corner = Corner(point)
        if stage.epilogue is None:
            for x, cells in zip(accumulated, results, strict=True):
                for i in range(rows):
                    for j, v in enumerate(vectors):
                        result = cells[i * len(vectors) + j]
                        kind = "vector" if v.lanes.width > 1 else "uniform"
                        self.cells.memory.store(
                            x, Cell(corner, i, v.offset), Val(kind, result), v.lanes
                        )
            return
        heavy = instructions(stage.epilogue.body) > HEAVY_BODY_OPS
        if heavy and rows > 1 and self.cells.schedule.row_dim is not None:
            self._epilogue_loop(point, rows, vectors, results[0])
            return
        for i in range(rows):
            for j, v in enumerate(vectors):
                self._epilogue_cell(Cell(corner, i, v.offset), v, results[0][i * len(vectors) + j])

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


def _joined(vectors: Sequence[Vector]) -> list[Vector]:
    """Return the vectors of a row with the whole ones, a power of two of them, as one."""
    whole = [v for v in vectors if v.lanes.mask is None]
    if len(whole) < 2 or len(whole) & (len(whole) - 1):
        return list(vectors)
    wide = Vector(whole[0].offset, Lanes(len(whole) * whole[0].lanes.width))
    return [wide, *vectors[len(whole) :]]

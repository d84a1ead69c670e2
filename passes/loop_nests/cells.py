"""The cells of a register block: the stage's body on each, inside its reduction loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from metadef import ir

from .access import Access
from .body import Lanes, Val, constant_splat, evaluate_body
from .control import loop
from .index_math import Index, add, div, mul, rem, sub, value
from .memory import Cell, CellMemory, Corner, Point
from .padding import turns_inside
from .prefetch import fetch
from .schedule import Schedule
from .stage import Inside, Operand, Stage, mergeable

#: Float sums longer than this are added up in chunks, so that the error grows with the square
#: root of the chunk count and not with the length (pairwise summation, Higham 1993).
CHUNK = 1024

#: So many sums in registers keep the multiply-add units busy: two units, four cycles each.
_BUSY_SUMS = 8
_MOST_STRANDS = 4
#: With so few sums a turn of the loop is short, and what counts its turns weighs.
_FEW_SUMS = 16
#: so many taps along a row of a tile are built one by one
_FEW_TAPS = 8

_LINE_BYTES = 64

Step = Callable[[Point, list[ir.Value]], list[ir.Value]]


@dataclass(frozen=True)
class Vector:
    """One vector of a block: its offset along the lanes' dim, and its lanes."""

    offset: Index
    lanes: Lanes


@dataclass(frozen=True)
class BlockCells:
    """Evaluates a stage on the cells of a block; `bounds` are the base and extent of each dim.

    `ahead` has the inputs of which something further on is fetched with each load, and how far.
    """

    stage: Stage
    schedule: Schedule
    bounds: list[tuple[Index, Index]]
    memory: CellMemory
    ahead: Mapping[int, Index] = field(default_factory=dict)

    def loops(
        self,
        dims: list[int],
        point: Point,
        carried: list[ir.Value],
        step: Step,
        sums: bool,
        inside: Sequence[Inside] = (),
    ) -> list[ir.Value]:
        """Nest loops over `dims` around `step`, which maps the carried values to their next.

        Those are float `sums`, which may be added up in any order, or not. Taps that are not
        `inside` are left out.
        """
        if not dims:
            return step(point, carried)
        d, rest = dims[0], dims[1:]
        base, extent = self.bounds[d]
        window = next((w for w in inside if w.tap == d), None)
        if window is not None:
            base, extent = turns_inside(window, point[window.output], base, extent)
        elif self._joined(d, rest, inside):
            point, d, rest = moved(point, d, base), rest[0], rest[1:]
            base, extent = 0, mul(extent, self.bounds[d][1])
        if isinstance(extent, int) and extent == 0:
            return carried
        if isinstance(extent, int) and extent == 1:
            return self.loops(rest, moved(point, d, base), carried, step, sums, inside)
        if isinstance(base, int) and isinstance(extent, int) and self._unrolled(d, extent):
            for i in range(base, base + extent):
                carried = self.loops(rest, moved(point, d, i), carried, step, sums, inside)
            return carried
        if sums and not rest and window is None:
            # Strands divide a long sum; of a product of several rows `blocking` cuts the reduction.
            most = CHUNK if len(carried) == _BUSY_SUMS else _MOST_STRANDS * CHUNK
            if not (isinstance(extent, int) and extent <= most):
                return self._chunks(d, base, extent, point, carried, step)
            return self._strands(d, base, add(base, extent), point, carried, step)
        return loop(
            base,
            add(base, extent),
            1,
            carried,
            lambda i, inner: self.loops(rest, moved(point, d, i), inner, step, sums, inside),
        )

    def _unrolled(self, d: int, extent: int) -> bool:
        """Tell whether each of few indices has a place that only a constant makes cheap to find."""
        inputs = [x for x in self.stage.inputs if isinstance(x, Access)]
        return extent <= _FEW_TAPS and any(x.padded and x.is_nonlinear(d) for x in inputs)

    def _joined(self, d: int, rest: list[int], inside: Sequence[Inside]) -> bool:
        """Tell whether the loop after that over taps `d` simply goes on with the next tap."""
        if not rest or not any(w.tap == d for w in self.stage.inside):
            return False
        if any(w.tap == rest[0] for w in inside):
            return False
        inner = rest[0]
        whole = self.bounds[inner] == (0, self.stage.extents[inner])
        return whole and mergeable(self.stage, d, inner)

    def _chunks(
        self,
        d: int,
        base: Index,
        extent: Index,
        point: Point,
        carried: list[ir.Value],
        step: Step,
    ) -> list[ir.Value]:
        """Sum each chunk of dim `d` from zero, then add it to what is carried."""
        end = value(add(base, extent))

        def one_chunk(i: ir.Value, outer: list[ir.Value]) -> list[ir.Value]:
            stop = ir.arith.minsi(value(add(i, CHUNK)), end)
            zeros = [constant_splat(v.type, 0.0) for v in outer]
            sums = self._strands(d, i, stop, point, zeros, step)
            return [ir.arith.addf(a, b) for a, b in zip(outer, sums, strict=True)]

        return loop(base, end, CHUNK, carried, one_chunk)

    def _strands(
        self, d: int, start: Index, stop: Index, point: Point, carried: list[ir.Value], step: Step
    ) -> list[ir.Value]:
        """Loop over dim `d`; few sums go on as strands that do not wait for each other."""
        count = min(_MOST_STRANDS, -(-_BUSY_SUMS // len(carried)))
        extent = sub(stop, start)
        if count == 1 and len(carried) <= _FEW_SUMS:
            return _by_twos(start, extent, carried, lambda i, x: step(moved(point, d, i), x))
        if count == 1 or (isinstance(extent, int) and extent < 2 * count):
            return loop(start, stop, 1, carried, lambda i, inner: step(moved(point, d, i), inner))
        zeros = [constant_splat(v.type, 0.0) for v in carried]
        n = len(carried)

        def turn(i: ir.Value, strands: list[ir.Value]) -> list[ir.Value]:
            after = [
                step(moved(point, d, add(i, mul(share, c))), strands[c * n : (c + 1) * n])
                for c in range(count)
            ]
            return [v for strand in after for v in strand]

        # Each strand has a stretch of its own: memory serves several streams faster than one.
        share = div(extent, count)
        whole = add(start, mul(share, count))
        strands = loop(start, add(start, share), 1, carried + zeros * (count - 1), turn)
        parts = [strands[c * n : (c + 1) * n] for c in range(count)]
        while len(parts) > 1:
            half = -(-len(parts) // 2)
            added = [
                [ir.arith.addf(a, b) for a, b in zip(x, y, strict=True)]
                for x, y in zip(parts, parts[half:], strict=False)
            ]
            parts = added + parts[len(added) : half]
        if isinstance(extent, int) and extent % count == 0:
            return parts[0]
        return loop(whole, stop, 1, parts[0], lambda i, inner: step(moved(point, d, i), inner))

    def start(self, k: int, point: Point, row: int, v: Vector) -> ir.Value:
        """Return the value that output k's accumulator starts from."""
        init = self.stage.init[k]
        if init is not None:
            return Val("uniform", init).vector(v.lanes)
        at = Cell(Corner(point), row, v.offset)
        return self.memory.load(self.stage.outputs[k], at, v.lanes).vector(v.lanes)

    def inner(
        self,
        point: Point,
        rows: int,
        vectors: Sequence[Vector],
        running: dict[int, list[ir.Value]],
    ) -> list[ir.Value]:
        """Evaluate the body on every cell at one reduction index; store what is not reduced."""
        stage = self.stage
        corner = Corner(point)
        loaded: dict[tuple[int, int, int], Val] = {}
        results: dict[tuple[int, int, int], ir.Value] = {}
        for i, j in _in_turn(rows, len(vectors)):
            v = vectors[j]
            at = Cell(corner, i, v.offset)
            arguments = [
                self._input(x, k, (i, rows), j, at, v.lanes, loaded)
                for k, x in enumerate(stage.inputs)
            ]
            cell = i * len(vectors) + j
            for k, x in enumerate(stage.outputs):
                arguments.append(self._running(k, x, running, cell, at, v.lanes))
            yielded = evaluate_body(
                stage.body, arguments, partial(self._index, at), self.memory.gather, v.lanes
            )
            for k, x in enumerate(stage.outputs):
                if k in running:
                    results[k, i, j] = yielded[k].vector(v.lanes)
                else:
                    self.memory.store(x, at, yielded[k], v.lanes)
        return [results[key] for key in sorted(results)]

    def _running(
        self,
        k: int,
        x: Access,
        running: dict[int, list[ir.Value]],
        cell: int,
        at: Cell,
        lanes: Lanes,
    ) -> Val:
        if k in running:
            return Val("vector" if lanes.width > 1 else "uniform", running[k][cell])
        argument = self.stage.body.arguments[len(self.stage.inputs) + k]
        if not list(argument.uses):
            return Val("uniform", constant_splat(x.element, 0))
        return self.memory.load(x, at, lanes)

    def _input(
        self,
        x: Operand,
        k: int,
        row_of: tuple[int, int],
        vector: int,
        at: Cell,
        lanes: Lanes,
        loaded: dict[tuple[int, int, int], Val],
    ) -> Val:
        """Load an input once for all the cells of the block that share it."""
        if not isinstance(x, Access):
            return Val("uniform", x)
        row_dim, lane_dim = self.schedule.row_dim, self.schedule.lanes
        row, rows = row_of
        key = (
            k,
            row if row_dim is not None and x.moves(row_dim) else -1,
            vector if lane_dim is not None and x.moves(lane_dim) else -1,
        )
        if key not in loaded and rows == lanes.width > 1 and self.memory.turns(x, lanes):
            for i, v in enumerate(self.memory.load_turned(x, at, lanes)):
                loaded[k, i, key[2]] = v
        elif key not in loaded:
            loaded[key] = self.memory.load(x, at, lanes)
            if k in self.ahead:
                self._fetch_ahead(x, k, at, lanes)
        return loaded[key]

    def _fetch_ahead(self, x: Access, k: int, at: Cell, lanes: Lanes) -> None:
        """Fetch each cache line of what lies ahead of a load; vectors that share one do it once."""
        line = max(8 * _LINE_BYTES // int(x.element.width), 1)
        if isinstance(at.offset, int) and at.offset % line:
            return
        address = add(self.memory.address(x, at), self.ahead[k])
        for first in range(0, lanes.width, line):
            fetch(x.buffer, add(address, first))

    def _index(self, at: Cell, dim: int) -> Val:
        return self.memory.index(self.stage, dim, at)


def moved(point: Point, dim: int, index: Index) -> Point:
    """Return `point` with its index along `dim` replaced."""
    return point[:dim] + (index,) + point[dim + 1 :]


def _in_turn(rows: int, vectors: int) -> list[tuple[int, int]]:
    """Return the cells of a block in such an order that the fewer of rows and vectors stay in
    registers, while the others come and go."""
    if rows >= vectors:
        return [(i, j) for i in range(rows) for j in range(vectors)]
    return [(i, j) for j in range(vectors) for i in range(rows)]


def _by_twos(
    start: Index,
    extent: Index,
    carried: list[ir.Value],
    step: Callable[[Index, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Build a loop of `extent` steps, two in each turn."""
    stop = add(start, sub(extent, rem(extent, 2)))
    carried = loop(start, stop, 2, carried, lambda i, held: step(add(i, 1), step(i, held)))
    if not isinstance(extent, int):
        return loop(stop, add(start, extent), 1, carried, step)
    return step(stop, carried) if extent % 2 else carried

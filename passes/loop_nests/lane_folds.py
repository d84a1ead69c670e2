"""Reductions with lanes along a reduction dim: partial results by lane, folded at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metadef import ir

from .body import Lanes, constant_splat
from .cells import CHUNK, BlockCells, Vector, moved
from .control import branch, loop
from .index_math import Index, add, div, mul, sub, value
from .memory import Point, masked
from .schedule import GREATEST, Combiner, combiners


@dataclass(frozen=True)
class LaneFold:
    """Reduces the rows of a block along the lanes' dim."""

    cells: BlockCells

    def reduce(self, point: Point, rows: int) -> list[list[ir.Value]]:
        """Reduce with lanes along a reduction dim; the lanes are folded at the end."""
        stage, schedule = self.cells.stage, self.cells.schedule
        lane_dim = schedule.lanes
        assert lane_dim is not None
        folds = combiners(stage)
        outputs = [k for k in range(len(stage.outputs)) if stage.accumulates(k)]
        width, count = schedule.width, schedule.vectors
        full = Lanes(width)
        start: list[ir.Value] = []
        for k in outputs:
            fold = folds[k]
            assert fold is not None, "lanes along a reduction need a plain fold"
            identity = constant_splat(full.type(stage.outputs[k].element), fold.identity)
            start += [identity] * (rows * count)
        chunked = all(folds[k].op == "arith.addf" for k in outputs)  # type: ignore[union-attr]
        outer = [d for d in stage.reduction_dims if d != lane_dim]

        def body(at: Point, vectors: list[Vector], carried: list[ir.Value]) -> list[ir.Value]:
            cells = rows * len(vectors)
            running = {k: carried[n * cells : (n + 1) * cells] for n, k in enumerate(outputs)}
            new = self.cells.inner(at, rows, vectors, running)
            if vectors[0].lanes.mask is None:
                return new
            return [
                ir.arith.select(vectors[0].lanes.mask, n, o)
                for n, o in zip(new, carried, strict=True)
            ]

        def sweep(at: Point, carried: list[ir.Value]) -> list[ir.Value]:
            return self._sweep(at, rows, carried, body, len(outputs), chunked)

        final = self.cells.loops(outer, point, start, sweep, False)
        per_output = rows * count
        results: list[list[ir.Value]] = []
        for n, k in enumerate(outputs):
            fold = folds[k]
            assert fold is not None
            values = final[n * per_output : (n + 1) * per_output]
            results.append(
                [
                    self._fold_row(k, fold, values[i * count : (i + 1) * count], point, i)
                    for i in range(rows)
                ]
            )
        return results

    def _sweep(
        self,
        at: Point,
        rows: int,
        carried: list[ir.Value],
        body: Callable[[Point, list[Vector], list[ir.Value]], list[ir.Value]],
        n_outputs: int,
        chunked: bool,
    ) -> list[ir.Value]:
        """Run along the lanes' dim: whole groups of vectors, then single ones, then the tail."""
        lane_dim, width, count = (
            self.cells.schedule.lanes,
            self.cells.schedule.width,
            self.cells.schedule.vectors,
        )
        assert lane_dim is not None
        base, extent = self.cells.bounds[lane_dim]
        group = width * count

        def grouped(start: Index, stop: Index, values: list[ir.Value]) -> list[ir.Value]:
            vectors = [Vector(width * j, Lanes(width)) for j in range(count)]
            return loop(start, stop, group, values,
                        lambda i, inner: body(moved(at, lane_dim, i), vectors, inner))  # fmt: skip

        whole = mul(div(extent, group), group)
        end = add(base, whole)
        if chunked and not (isinstance(extent, int) and extent <= CHUNK * group):
            carried = self._chunked_groups(base, end, CHUNK * group, carried, grouped)
        elif not (isinstance(whole, int) and whole == 0):
            carried = grouped(base, end, carried)
        # The rest goes to the first vector of each row.
        cells = rows * n_outputs
        first = [carried[c * count] for c in range(cells)]
        singles = mul(div(sub(extent, whole), width), width)
        stop = add(end, singles)
        one = [Vector(0, Lanes(width))]
        if not (isinstance(singles, int) and singles == 0):
            first = loop(end, stop, width, first,
                         lambda i, inner: body(moved(at, lane_dim, i), one, inner))  # fmt: skip
        rest = sub(sub(extent, whole), singles)
        if isinstance(rest, int):
            if rest:
                first = body(moved(at, lane_dim, stop), [Vector(0, masked(width, rest))], first)
        else:
            first = branch(
                ir.arith.cmpi(ir.arith.CmpIPredicate.sgt, rest, value(0)),
                first,
                lambda: body(moved(at, lane_dim, stop), [Vector(0, masked(width, rest))], first),
            )
        carried = list(carried)
        for c in range(cells):
            carried[c * count] = first[c]
        return carried

    def _chunked_groups(
        self,
        base: Index,
        end: Index,
        chunk: int,
        carried: list[ir.Value],
        grouped: Callable[[Index, Index, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        stop = value(end)

        def one_chunk(i: ir.Value, outer: list[ir.Value]) -> list[ir.Value]:
            upto = ir.arith.minsi(value(add(i, chunk)), stop)
            sums = grouped(i, upto, [constant_splat(v.type, 0.0) for v in outer])
            return [ir.arith.addf(a, b) for a, b in zip(outer, sums, strict=True)]

        return loop(base, stop, chunk, carried, one_chunk)

    def _fold_row(
        self, k: int, fold: Combiner, vectors: list[ir.Value], point: Point, row: int
    ) -> ir.Value:
        """Fold the vectors of a row and their lanes to a scalar, and the start value into it."""
        while len(vectors) > 1:
            half = len(vectors) // 2
            vectors = [_combine(fold, vectors[i], vectors[i + half]) for i in range(half)] + (
                vectors[2 * half :]
            )
        element = self.cells.stage.outputs[k].element
        total = _reduce_lanes(fold, vectors[0], element)
        start = self.cells.start(k, point, row, Vector(0, Lanes(1)))
        return _combine(fold, total, start)


def _combine(fold: Combiner, a: ir.Value, b: ir.Value) -> ir.Value:
    if fold.op == GREATEST:
        return ir.arith.select(ir.arith.cmpf(ir.arith.CmpFPredicate.OGT, a, b), a, b)
    result: ir.Value = ir.Operation.create(fold.op, results=[a.type], operands=[a, b]).results[0]
    return result


def _reduce_lanes(fold: Combiner, vector: ir.Value, element: ir.Type) -> ir.Value:
    """Fold the lanes of a vector in halves (a tree: short, and exact enough)."""
    width = ir.VectorType(vector.type).shape[0]
    while width > 1:
        half = width // 2
        low = ir.vector.extract_strided_slice(
            ir.VectorType.get([half], element), vector, [0], [half], [1]
        )
        high = ir.vector.extract_strided_slice(
            ir.VectorType.get([half], element), vector, [half], [half], [1]
        )
        vector, width = _combine(fold, low, high), half
    result: ir.Value = ir.vector.extract(vector, [], [0])
    return result

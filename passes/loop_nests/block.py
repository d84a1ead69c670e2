"""One register block: rows by vectors of one stage, its reduction loops, and its epilogue."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from metadef import ir

from .access import Access, FlatBuffer
from .body import Lanes, Val, constant_splat, evaluate_body, lane_index
from .index_math import Index, add, mul, value
from .schedule import Combiner, Schedule, combiners
from .stage import Operand, Stage, point_add

Point = tuple[Index, ...]

# Bodies with more ops than this are emitted once in a loop over the block's rows, not unrolled.
_UNROLLED_BODY_OPS = 12
# Float sums longer than this are added up in chunks, so that the error grows with the square
# root of the chunk count and not with the length (pairwise summation, Higham 1993).
_CHUNK = 1024


@dataclass(frozen=True)
class Vector:
    """One vector of a block: its offset along the lanes' dim, and its lanes."""

    offset: Index
    lanes: Lanes


class Corner:
    """The loop indices of a block's first cell, and the addresses already built for it."""

    def __init__(self, point: Point) -> None:
        self.point = point
        self._addresses: dict[int, Index] = {}

    def address(self, x: Access) -> Index:
        """Return the element address of an operand at the corner (built once)."""
        if id(x) not in self._addresses:
            self._addresses[id(x)] = x.address(self.point)
        return self._addresses[id(x)]


@dataclass(frozen=True)
class Cell:
    """A vector of a block: `row` rows and `offset` lanes away from its corner."""

    corner: Corner
    row: int
    offset: Index


@dataclass(eq=False)
class BlockEmitter:
    """Builds register blocks of one stage at the insertion point.

    `flat` gives the flat view of a buffer read by `memref.load` inside a body; `bounds` are the
    base and extent of each dim, of which the reduction dims are looped over here. Stack space is
    taken at the start of `entry`.
    """

    stage: Stage
    schedule: Schedule
    bounds: list[tuple[Index, Index]]
    flat: Callable[[ir.Value], FlatBuffer]
    entry: ir.Block

    def emit(self, point: Point, rows: int, vectors: Sequence[Vector]) -> None:
        """Compute the block at `point`: `rows` rows by `vectors`."""
        if self.schedule.over_reduction:
            results = self._reduce_over_lanes(point, rows)
            vectors = [Vector(0, Lanes(1))]
        else:
            results = self._reduce(point, rows, vectors)
        self._finish(point, rows, vectors, results)

    # -- the reduction -------------------------------------------------------------------------

    def _reduce(self, point: Point, rows: int, vectors: Sequence[Vector]) -> list[list[ir.Value]]:
        """Run the reduction loops with the running values in registers; return them by output."""
        stage = self.stage
        outputs = [k for k in range(len(stage.outputs)) if stage.accumulates(k)]
        if not stage.reduction_dims:
            self._inner(point, rows, vectors, {})
            return []
        cells = [(i, v) for i in range(rows) for v in vectors]
        start = [self._start(k, point, i, v) for k in outputs for i, v in cells]
        chunked = all(
            c is not None and c.op == "arith.addf" for c in combiners(stage)
        ) and len(outputs) == len(stage.outputs)

        def step(at: Point, carried: list[ir.Value]) -> list[ir.Value]:
            running = {
                k: carried[n * len(cells) : (n + 1) * len(cells)] for n, k in enumerate(outputs)
            }
            return self._inner(at, rows, vectors, running)

        final = self._loops(stage.reduction_dims, point, start, step, chunked)
        return [final[n * len(cells) : (n + 1) * len(cells)] for n in range(len(outputs))]

    def _loops(
        self,
        dims: list[int],
        point: Point,
        carried: list[ir.Value],
        step: Callable[[Point, list[ir.Value]], list[ir.Value]],
        chunked: bool,
    ) -> list[ir.Value]:
        """Nest loops over `dims` around `step`, which maps the carried values to their next."""
        if not dims:
            return step(point, carried)
        d, rest = dims[0], dims[1:]
        base, extent = self.bounds[d]
        if isinstance(extent, int) and extent == 1:
            return self._loops(rest, _at(point, d, base), carried, step, chunked)
        if chunked and not rest and not (isinstance(extent, int) and extent <= 4 * _CHUNK):
            return self._chunks(d, point, carried, step)
        return loop(
            base,
            add(base, extent),
            1,
            carried,
            lambda i, inner: self._loops(rest, _at(point, d, i), inner, step, chunked),
        )

    def _chunks(
        self,
        d: int,
        point: Point,
        carried: list[ir.Value],
        step: Callable[[Point, list[ir.Value]], list[ir.Value]],
    ) -> list[ir.Value]:
        """Sum each chunk of dim `d` from zero, then add it to what is carried."""
        base, extent = self.bounds[d]
        end = value(add(base, extent))

        def one_chunk(i: ir.Value, outer: list[ir.Value]) -> list[ir.Value]:
            stop = ir.arith.minsi(value(add(i, _CHUNK)), end)
            zeros = [constant_splat(v.type, 0.0) for v in outer]
            sums = loop(i, stop, 1, zeros, lambda j, inner: step(_at(point, d, j), inner))
            return [ir.arith.addf(a, b) for a, b in zip(outer, sums, strict=True)]

        return loop(base, end, _CHUNK, carried, one_chunk)

    def _start(self, k: int, point: Point, row: int, v: Vector) -> ir.Value:
        """Return the value that output k's accumulator starts from."""
        init = self.stage.init[k]
        if init is not None:
            return Val("uniform", init).vector(v.lanes)
        at = self._cell(Corner(point), row, v)
        return self._load(self.stage.outputs[k], at, v.lanes).vector(v.lanes)

    def _inner(
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
        results: dict[int, list[ir.Value]] = {k: [] for k in running}
        for i in range(rows):
            for j, v in enumerate(vectors):
                at = self._cell(corner, i, v)
                arguments = [
                    self._input(x, k, i, j, at, v.lanes, loaded) for k, x in enumerate(stage.inputs)
                ]
                cell = i * len(vectors) + j
                for k, x in enumerate(stage.outputs):
                    arguments.append(self._running(k, x, running, cell, at, v.lanes))
                yielded = evaluate_body(
                    stage.body, arguments, lambda d, at=at: self._index(stage, d, at),
                    self._gather, v.lanes,
                )  # fmt: skip
                for k, x in enumerate(stage.outputs):
                    if k in running:
                        results[k].append(yielded[k].vector(v.lanes))
                    else:
                        self._store(x, at, yielded[k], v.lanes)
        return [r for k in running for r in results[k]]

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
        return self._load(x, at, lanes)

    def _input(
        self,
        x: Operand,
        k: int,
        row: int,
        vector: int,
        at: Cell,
        lanes: Lanes,
        loaded: dict[tuple[int, int, int], Val],
    ) -> Val:
        """Load an input once for all the cells of the block that share it."""
        if not isinstance(x, Access):
            return Val("uniform", x)
        row_dim, lane_dim = self.schedule.row_dim, self.schedule.lanes
        key = (
            k,
            row if row_dim is not None and x.moves(row_dim) else -1,
            vector if lane_dim is not None and x.moves(lane_dim) else -1,
        )
        if key not in loaded:
            loaded[key] = self._load(x, at, lanes)
        return loaded[key]

    # -- lanes along a reduction dim -----------------------------------------------------------

    def _reduce_over_lanes(self, point: Point, rows: int) -> list[list[ir.Value]]:
        """Reduce with lanes along a reduction dim; the lanes are folded at the end."""
        stage, schedule = self.stage, self.schedule
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
            new = self._inner(at, rows, vectors, running)
            if vectors[0].lanes.mask is None:
                return new
            return [
                ir.arith.select(vectors[0].lanes.mask, n, o)
                for n, o in zip(new, carried, strict=True)
            ]

        def sweep(at: Point, carried: list[ir.Value]) -> list[ir.Value]:
            return self._sweep(at, rows, carried, body, len(outputs), chunked)

        final = self._loops(outer, point, start, sweep, False)
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
        lane_dim, width, count = self.schedule.lanes, self.schedule.width, self.schedule.vectors
        assert lane_dim is not None
        base, extent = self.bounds[lane_dim]
        group = width * count

        def grouped(start: Index, stop: Index, values: list[ir.Value]) -> list[ir.Value]:
            vectors = [Vector(width * j, Lanes(width)) for j in range(count)]
            return loop(start, stop, group, values,
                        lambda i, inner: body(_at(at, lane_dim, i), vectors, inner))  # fmt: skip

        whole = mul(_div(extent, group), group)
        end = add(base, whole)
        if chunked and not (isinstance(extent, int) and extent <= _CHUNK * group):
            carried = self._chunked_groups(base, end, _CHUNK * group, carried, grouped)
        elif not (isinstance(whole, int) and whole == 0):
            carried = grouped(base, end, carried)
        # The rest goes to the first vector of each row.
        cells = rows * n_outputs
        first = [carried[c * count] for c in range(cells)]
        singles = mul(_div(_sub(extent, whole), width), width)
        stop = add(end, singles)
        one = [Vector(0, Lanes(width))]
        if not (isinstance(singles, int) and singles == 0):
            first = loop(end, stop, width, first,
                         lambda i, inner: body(_at(at, lane_dim, i), one, inner))  # fmt: skip
        rest = _sub(_sub(extent, whole), singles)
        if isinstance(rest, int):
            if rest:
                first = body(_at(at, lane_dim, stop), [Vector(0, masked(width, rest))], first)
        else:
            first = branch(
                ir.arith.cmpi(ir.arith.CmpIPredicate.sgt, rest, value(0)),
                first,
                lambda: body(_at(at, lane_dim, stop), [Vector(0, masked(width, rest))], first),
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
        element = self.stage.outputs[k].element
        total = _reduce_lanes(fold, vectors[0], element)
        start = self._start(k, point, row, Vector(0, Lanes(1)))
        return _combine(fold, total, start)

    # -- the epilogue --------------------------------------------------------------------------

    def _finish(
        self, point: Point, rows: int, vectors: Sequence[Vector], results: list[list[ir.Value]]
    ) -> None:
        """Store the reduced values, through the epilogue if there is one."""
        stage = self.stage
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
                        self._store(x, self._cell(corner, i, v), Val(kind, result), v.lanes)
            return
        heavy = len(list(stage.epilogue.body.operations)) > _UNROLLED_BODY_OPS
        if heavy and rows > 1 and self.schedule.row_dim is not None:
            self._epilogue_loop(point, rows, vectors, results[0])
            return
        for i in range(rows):
            for j, v in enumerate(vectors):
                self._epilogue_cell(self._cell(corner, i, v), v, results[0][i * len(vectors) + j])

    def _epilogue_loop(
        self, point: Point, rows: int, vectors: Sequence[Vector], cells: list[ir.Value]
    ) -> None:
        """Put the block on the stack and run the epilogue in a loop over its rows."""
        row_dim = self.schedule.row_dim
        assert row_dim is not None
        n = len(vectors)
        type_ = ir.MemRefType.get([rows, n], cells[0].type)
        # At the function's entry: an alloca inside a loop would grow the stack at each turn.
        with ir.InsertionPoint.at_block_begin(self.entry):
            stack = ir.memref.alloca(type_, [], [], alignment=64)
        for i in range(rows):
            for j in range(n):
                ir.memref.store(cells[i * n + j], stack, [value(i), value(j)])

        def one_row(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            corner = Corner(point_add(point, row_dim, i))
            for j, v in enumerate(vectors):
                at = self._cell(corner, 0, v)
                self._epilogue_cell(at, v, ir.memref.load(stack, [i, value(j)]))
            return []

        loop(0, rows, 1, [], one_row)

    def _epilogue_cell(self, at: Cell, v: Vector, result: ir.Value) -> None:
        stage, epilogue = self.stage, self.stage.epilogue
        assert epilogue is not None
        arguments: list[Val] = []
        for k, x in enumerate(epilogue.inputs):
            if k == stage.epilogue_input:
                arguments.append(Val("vector" if v.lanes.width > 1 else "uniform", result))
            elif isinstance(x, Access):
                arguments.append(self._load(x, at, v.lanes))
            else:
                arguments.append(Val("uniform", x))
        for k, x in enumerate(epilogue.outputs):
            argument = epilogue.body.arguments[len(epilogue.inputs) + k]
            used = bool(list(argument.uses))
            zero = Val("uniform", constant_splat(x.element, 0))
            arguments.append(self._load(x, at, v.lanes) if used else zero)
        yielded = evaluate_body(
            epilogue.body, arguments, lambda d: self._index(epilogue, d, at), self._gather, v.lanes
        )
        for x, y in zip(epilogue.outputs, yielded, strict=True):
            self._store(x, at, y, v.lanes)

    # -- memory --------------------------------------------------------------------------------

    def _cell(self, corner: Corner, row: int, v: Vector) -> Cell:
        return Cell(corner, row, v.offset)

    def _index(self, stage: Stage, dim: int, at: Cell) -> Val:
        d = stage.index_dims[dim]
        index = at.corner.point[d]
        if d == self.schedule.row_dim:
            index = add(index, at.row)
        if d == self.schedule.lanes:
            return lane_index(value(add(index, at.offset)))
        return Val("uniform", value(index))

    def _address(self, x: Access, at: Cell) -> ir.Value:
        """Return the address of a cell's first lane: the corner's, and constant steps from it."""
        address = at.corner.address(x)
        row_dim, lanes = self.schedule.row_dim, self.schedule.lanes
        if row_dim is not None:
            address = add(address, mul(at.row, x.strides[row_dim]))
        if lanes is not None and not (isinstance(at.offset, int) and at.offset == 0):
            stride = x.lane_stride(lanes, self.schedule.panel)
            assert stride is not None, "lanes along a dim that is not linear"
            address = add(address, mul(at.offset, stride))
        return value(address)

    def _lane_stride(self, x: Access, lanes: Lanes) -> Index:
        """Return how far apart the lanes are in memory (0: all lanes read one element)."""
        if lanes.width == 1 or self.schedule.lanes is None:
            return 0
        stride = x.lane_stride(self.schedule.lanes, lanes.width)
        assert stride is not None, "lanes along a dim that is not linear"
        return stride

    def _load(self, x: Access, at: Cell, lanes: Lanes) -> Val:
        stride = self._lane_stride(x, lanes)
        address = self._address(x, at)
        if isinstance(stride, int) and stride == 0:
            return Val("uniform", ir.memref.load(x.buffer, [address]))
        if isinstance(stride, int) and stride == 1:
            return _load_contiguous(x.buffer, x.element, address, lanes)
        addresses = [value(add(address, mul(stride, i))) for i in range(lanes.width)]
        return _load_scattered(x.buffer, x.element, addresses, lanes)

    def _store(self, x: Access, at: Point, v: Val, lanes: Lanes) -> None:
        stride = self._lane_stride(x, lanes)
        address = self._address(x, at)
        if lanes.width == 1:
            ir.memref.store(v.value, x.buffer, [address])
            return
        vector = v.vector(lanes)
        if isinstance(stride, int) and stride == 1:
            if lanes.mask is None:
                ir.vector.store(vector, x.buffer, [address])
            else:
                ir.vector.maskedstore(x.buffer, [address], lanes.mask, vector)
            return
        assert not (isinstance(stride, int) and stride == 0), "lanes stored on one element"
        assert lanes.mask is None or lanes.active is not None, "scattered store, unknown tail"
        for i in range(lanes.width if lanes.active is None else lanes.active):
            lane = ir.vector.extract(vector, [], [i])
            ir.memref.store(lane, x.buffer, [value(add(address, mul(stride, i)))])

    def _gather(self, memref: ir.Value, indices: list[Val], lanes: Lanes) -> Val:
        """Read `memref.load` of a body: one element, neighbours, or lane by lane."""
        flat = self.flat(memref)
        element = ir.MemRefType(memref.type).element_type
        moving = [d for d, i in enumerate(indices) if i.kind != "uniform"]
        neighbours = (
            len(moving) == 1
            and indices[moving[0]].kind == "iota"
            and isinstance(flat.strides[moving[0]], int)
            and flat.strides[moving[0]] == 1
        )
        if lanes.width == 1 or not moving or neighbours:
            address = flat.offset
            for i, stride in zip(indices, flat.strides, strict=True):
                address = add(address, mul(i.value, stride))
            if neighbours and lanes.width > 1:
                return _load_contiguous(flat.flat, element, value(address), lanes)
            return Val("uniform", ir.memref.load(flat.flat, [value(address)]))
        assert lanes.mask is None or lanes.active is not None, "gather with an unknown tail"
        vectors = [i.vector(lanes) if d in moving else i.value for d, i in enumerate(indices)]
        addresses = []
        for lane in range(lanes.width if lanes.active is None else lanes.active):
            address = flat.offset
            for d, stride in enumerate(flat.strides):
                i = ir.vector.extract(vectors[d], [], [lane]) if d in moving else vectors[d]
                address = add(address, mul(i, stride))
            addresses.append(value(address))
        return _load_scattered(flat.flat, element, addresses, lanes)


def masked(width: int, active: Index) -> Lanes:
    """Return lanes of which the first `active` are on."""
    type_ = ir.VectorType.get([width], ir.IntegerType.get_signless(1))
    mask = ir.vector.create_mask(type_, [value(active)])
    return Lanes(width, mask, active if isinstance(active, int) else None)


def needs_known_tail(stage: Stage, schedule: Schedule) -> bool:
    """Tell whether a masked tail would need to know its lanes (gathers and scatters do)."""
    lanes = schedule.lanes
    if lanes is None:
        return False
    for x in stage.accesses():
        stride = x.lane_stride(lanes, schedule.width)
        if not (isinstance(stride, int) and stride in (0, 1)):
            return True
    ops = [stage.op] + ([stage.epilogue.op] if stage.epilogue else [])
    return any(o.operation.name == "memref.load" for op in ops for o in ir.operations(op))


def _load_contiguous(buffer: ir.Value, element: ir.Type, address: ir.Value, lanes: Lanes) -> Val:
    type_ = lanes.type(element)
    if lanes.mask is None:
        return Val("vector", ir.vector.load(type_, buffer, [address]))
    zero = constant_splat(type_, 0)
    return Val("vector", ir.vector.maskedload(type_, buffer, [address], lanes.mask, zero))


def _load_scattered(
    buffer: ir.Value, element: ir.Type, addresses: list[ir.Value], lanes: Lanes
) -> Val:
    active = lanes.width if lanes.active is None else lanes.active
    assert lanes.mask is None or lanes.active is not None, "scattered load with an unknown tail"
    elements = [ir.memref.load(buffer, [a]) for a in addresses[:active]]
    if active < lanes.width:
        elements += [constant_splat(element, 0)] * (lanes.width - active)
    return Val("vector", ir.vector.from_elements(lanes.type(element), elements))


def _combine(fold: Combiner, a: ir.Value, b: ir.Value) -> ir.Value:
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


def _at(point: Point, dim: int, index: Index) -> Point:
    return point[:dim] + (index,) + point[dim + 1 :]


def _div(a: Index, b: int) -> Index:
    return a // b if isinstance(a, int) else ir.arith.divui(a, value(b))


def _sub(a: Index, b: Index) -> Index:
    if isinstance(a, int) and isinstance(b, int):
        return a - b
    return ir.arith.subi(value(a), value(b))


def loop(
    start: Index,
    stop: Index,
    step: int,
    carried: list[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], list[ir.Value]],
) -> list[ir.Value]:
    """Build an `scf.for` whose body maps the carried values to their next; return the last."""
    op = ir.scf.ForOp(value(start), value(stop), value(step), carried)
    with ir.InsertionPoint(op.body):
        ir.scf.YieldOp(body(op.induction_variable, list(op.inner_iter_args)))
    return list(op.results)


def branch(
    condition: ir.Value, otherwise: list[ir.Value], then: Callable[[], list[ir.Value]]
) -> list[ir.Value]:
    """Build an `scf.if` that yields `then()` or the values as they are."""
    op = ir.scf.IfOp(condition, [v.type for v in otherwise], has_else=True)
    with ir.InsertionPoint(op.then_block):
        ir.scf.YieldOp(then())
    with ir.InsertionPoint(op.else_block):
        ir.scf.YieldOp(otherwise)
    return list(op.results)

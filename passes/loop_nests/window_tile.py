"""Windows along the lanes, strided or across an edge: each box reads them from a copy of its own.

Lanes that are `stride` elements apart cost a load and a shuffle for each of `stride` vectors, again
at every tap, and an edge cannot be left out of some lanes only. So a box first copies what it reads
into a tile that stays in the near caches: of each row the elements `stride` apart side by side (a
phase of it), zeros where the padding is. From there every tap reads neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd, prod

from metadef import ir
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .access import Access
from .body import Lanes, constant_splat
from .control import loop
from .index_math import Index, add, maximum, minimum, mul, sub, value
from .memory import load_contiguous, masked
from .private_tiles import PrivateTile, private_tile
from .schedule import MOST_APART, Schedule, Target, choose, combiners
from .sharing import even, known
from .stage import Inside, Stage

# Boxes for each core, so that no core waits long for another.
_TASKS_PER_CORE = 4
_SUMS = frozenset({"arith.addf", "arith.addi"})


@dataclass(frozen=True)
class WindowTile:
    """A stage whose boxes read input `number` from tiles: rows, of each its phases.

    The windows are `along` the lanes and `across` them, over rows (None: there is one row).
    `schedule` is for boxes with so many turns of each dim as `box` says.
    """

    stage: Stage
    number: int
    along: Inside
    across: Inside | None
    unit: int
    schedule: Schedule
    box: dict[int, int]

    def cleared(self, entry: ir.Block) -> PrivateTile:
        """Build the tile, full of zeros: nobody writes what is left and right of the rows."""
        size = self._rows(self.box) * self._row
        tile = private_tile(self._source.element, size, entry)
        self._clear(tile.flat, 0, size)
        return tile

    def fill(self, tile: ir.Value, bounds: list[tuple[Index, Index]]) -> Stage:
        """Copy what the box at `bounds` reads; return the stage that reads it there."""
        corner = self._source.address(
            tuple(0 if self.stage.reduction[d] else base for d, (base, _) in enumerate(bounds))
        )
        x = _in_tile(self._source, self.along, self.across, self._pitch)
        w = self.across
        if w is None:
            self._copy_row(tile, corner, 0)
            return _reading(self.stage, self.number, replace(x, buffer=tile))
        base, extent = bounds[w.output]
        assert isinstance(extent, int), "a box of known size"
        count = _reach(self.stage, w, extent)
        first = add(mul(base, w.stride), w.start)
        low = minimum(maximum(sub(0, first), 0), count)
        high = maximum(minimum(sub(w.extent, first), count), low)
        self._clear(tile, 0, mul(low, self._row))
        self._clear(tile, mul(high, self._row), count * self._row)
        apart = _int(self._source.strides[w.tap]) // w.dilation

        def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            self._copy_row(tile, add(corner, mul(i, apart)), mul(i, self._row))
            return []

        loop(low, high, 1, [], one)
        offset = mul(base, x.strides[w.output])
        return _reading(self.stage, self.number, replace(x, buffer=tile, offset=sub(0, offset)))

    @property
    def _source(self) -> Access:
        x = self.stage.inputs[self.number]
        assert isinstance(x, Access)
        return x

    @property
    def _pitch(self) -> int:
        """The elements of one phase of a row, in whole vectors, as it is written and read."""
        w, unit = self.along, self.unit
        steps = -(-self._columns // (w.stride * unit))
        written = (w.stride - 1 - w.start) // w.stride + steps * unit
        outputs = -(-_int(self.stage.extents[w.output]) // unit) * unit
        read = outputs + (_int(self.stage.extents[w.tap]) - 1) * w.dilation // w.stride
        return -(-max(written, read) // unit) * unit

    @property
    def _row(self) -> int:
        return self.along.stride * self._pitch

    @property
    def _columns(self) -> int:
        """The elements of a row of the input that some window reads, from its first on."""
        w = self.along
        return min(w.extent, _reach(self.stage, w, _int(self.stage.extents[w.output])) + w.start)

    @property
    def bytes(self) -> int:
        """The bytes of the tile of a box."""
        return self._rows(self.box) * self._row * int(self._source.element.width) // 8

    def _rows(self, box: dict[int, int]) -> int:
        w = self.across
        return 1 if w is None else _reach(self.stage, w, box[w.output])

    def rows_of_box(self, target: Target) -> int | None:
        """Return the rows of outputs whose tile fits the second cache level, enough for the cores;
        None if not even one does."""
        w = self.across
        assert w is not None
        rows, block = _int(self.stage.extents[w.output]), self.schedule.rows
        row_bytes = self._row * int(self._source.element.width) // 8
        depth = target.l2_bytes // 4 // row_bytes - _reach(self.stage, w, 1)
        if depth < 0:
            return None
        others = [self.stage.extents[d] for d in self.box if d not in (w.output, self.along.output)]
        parts = -(-_TASKS_PER_CORE * target.cores // max(prod(map(known, others)), 1))
        most = min(depth // w.stride + 1, max(-(-rows // parts), block))
        return even(rows, max(most // block * block, 1)) if most < rows else rows

    def _clear(self, tile: ir.Value, start: Index, stop: Index) -> None:
        zeros = constant_splat(ir.VectorType.get([self.unit], self._source.element), 0)

        def one(i: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            ir.vector.store(zeros, tile, [i])
            return []

        loop(start, stop, self.unit, [], one)

    def _copy_row(self, tile: ir.Value, source: Index, target: Index) -> None:
        """Copy a row, whose windows begin at the address `source`, by its phases to `target`."""
        w, unit = self.along, self.unit
        step = w.stride * unit
        whole = self._columns // step

        def vectors(n: Index, left: int) -> None:
            start = add(source, add(mul(n, step), -w.start))
            loaded = [
                self._load(add(start, j * unit), min(unit, max(left - j * unit, 0)))
                for j in range(w.stride)
            ]
            for r, phase in enumerate(_phases(loaded)):
                at, number = (r - w.start) // w.stride, (r - w.start) % w.stride
                place = add(add(target, number * self._pitch + at), mul(n, unit))
                ir.vector.store(phase, tile, [value(place)])

        def one(n: ir.Value, _: list[ir.Value]) -> list[ir.Value]:
            vectors(n, step)
            return []

        loop(0, whole, 1, [], one)
        if self._columns % step:
            vectors(whole, self._columns % step)

    def _load(self, address: Index, active: int) -> ir.Value:
        """Load a vector of the input, zeros behind its first `active` lanes."""
        x = self._source
        type_ = ir.VectorType.get([self.unit], x.element)
        if active == 0:
            return constant_splat(type_, 0)
        lanes = Lanes(self.unit) if active == self.unit else masked(self.unit, active)
        return load_contiguous(x.buffer, x.element, value(address), lanes).value


def window_tile(stage: Stage, target: Target, wanted: KernelChoice = BY_RULE) -> WindowTile | None:
    """Return the tile of a sum over windows that are strided, or cross an edge, along the lanes.

    None for any other stage: with windows over more than rows and columns, with sums over more than
    the taps, or of sizes that are not known.
    """
    found = _windows(stage)
    if found is None:
        return None
    number, along, across = found
    x = stage.inputs[number]
    assert isinstance(x, Access)
    unit = target.vector_bits // int(x.element.width)
    windowed = {along.output} | ({across.output} if across else set())
    extents = tuple(
        e if stage.reduction[d] or d in windowed else 1 for d, e in enumerate(stage.extents)
    )
    near = _reading(stage, number, _in_tile(x, along, across, unit))
    schedule = choose(near, extents, target, replace(wanted, lanes=None))
    if schedule.lanes != along.output or schedule.over_reduction:
        return None
    box = {d: _int(extents[d]) for d in stage.parallel_dims}
    tile = WindowTile(stage, number, along, across, unit, schedule, box)
    rows = None if across is None else tile.rows_of_box(target)
    if across is None or rows is None:
        return tile if across is None else None
    if wanted.tiles is not None:
        rows = wanted.tiles[list(box).index(across.output)]
    return replace(tile, box=box | {across.output: rows})


def _windows(stage: Stage) -> tuple[int, Inside, Inside | None] | None:
    """Return the input that windows read, the window along the lanes, and that across them."""
    if not stage.reduction_dims or len(stage.outputs) != 1 or not stage.accumulates(0):
        return None
    (fold,) = combiners(stage)
    out = stage.outputs[0].strides
    lanes = [d for d in stage.parallel_dims if out[d] == 1 and stage.extents[d] != 1]
    if (
        fold is None
        or fold.op not in _SUMS
        or len(lanes) != 1
        or not 1 <= len(stage.reduction_dims) <= 2
    ):
        return None
    moving = [k for k, x in enumerate(stage.inputs) if isinstance(x, Access) and x.moves(lanes[0])]
    if len(moving) != 1:
        return None
    x = stage.inputs[moving[0]]
    assert isinstance(x, Access)
    sizes = [stage.extents[d] for d in (*stage.reduction_dims, *lanes)]
    if x.nonlinear or not all(isinstance(n, int) for n in (*x.strides, *sizes)):
        return None
    tap, *others = sorted(stage.reduction_dims, key=lambda d: _int(x.strides[d]))
    along = _window(stage, x, lanes[0], tap, 1)
    if along is None or along.start > 0 or not 1 <= along.stride <= MOST_APART:
        return None
    if along.stride == 1 and not any(w.output == along.output for w in stage.inside):
        return None
    if not others:
        return moving[0], along, None
    outer = [
        (_int(x.strides[d]), d)
        for d in stage.parallel_dims
        if d != lanes[0] and stage.extents[d] != 1 and x.strides[d] != 0
    ]
    given = [w.output for w in stage.inside if w.tap == others[0]]
    output = given[0] if given else min(outer)[1] if outer else None
    across = None if output is None else _window(stage, x, output, others[0], None)
    if across is None or not isinstance(stage.extents[across.output], int):
        return None
    return moving[0], along, across


def _window(stage: Stage, x: Access, output: int, tap: int, unit: int | None) -> Inside | None:
    """Return the window of two dims of `x`, whose positions are `unit` elements apart (None: as
    far as can be); None if there is a gap between its turns, or it has not these dims."""
    stride, dilation, taps = _int(x.strides[output]), _int(x.strides[tap]), _int(stage.extents[tap])
    for w in stage.inside:
        if w.output == output or w.tap == tap:
            fits = w.output == output and w.tap == tap and unit in (None, stride // w.stride)
            return w if fits else None
    unit = gcd(stride, dilation) if unit is None else unit
    if dilation < unit or not unit <= stride <= dilation * taps:
        return None
    w = Inside(output, tap, stride // unit, dilation // unit, 0, 0)
    outputs = stage.extents[output]
    return replace(w, extent=_reach(stage, w, outputs)) if isinstance(outputs, int) else None


def _reach(stage: Stage, w: Inside, outputs: int) -> int:
    """Return how many positions of the input the windows of so many outputs span."""
    return (outputs - 1) * w.stride + (_int(stage.extents[w.tap]) - 1) * w.dilation + 1


def _reading(stage: Stage, number: int, x: Access) -> Stage:
    """Return the stage with input `number` read through `x`, where no window crosses an edge."""
    inputs = [x if k == number else y for k, y in enumerate(stage.inputs)]
    return replace(stage, inputs=inputs, inside=())


def _phases(vectors: list[ir.Value]) -> list[ir.Value]:
    """Return for each of n vectors that follow one another every n-th element, from each on."""
    n = len(vectors)
    width = ir.VectorType(vectors[0].type).shape[0]
    found = []
    for phase in range(n):
        picked = vectors[0]
        for j in range(1, n):
            # Lanes up to `done` are there already, or are picked from the first two vectors.
            places = [phase + n * i for i in range(width)]
            lanes = [
                (p if j == 1 else i) if p < j * width else width + p % width
                for i, p in enumerate(places)
            ]
            picked = ir.vector.shuffle(picked, vectors[j], lanes)
        found.append(picked)
    return found


def _int(i: Index) -> int:
    assert isinstance(i, int), "a size that is known"
    return i


def _in_tile(x: Access, along: Inside, across: Inside | None, pitch: int) -> Access:
    """Return the access of an input's tile whose first row is read by the first output."""
    strides: list[Index] = [0] * len(x.strides)
    strides[along.output] = 1
    nonlinear: tuple[tuple[ir.AffineExpr, Index], ...] = ()
    if along.stride == 1:
        strides[along.tap] = along.dilation
    else:
        place = ir.AffineExpr.get_dim(along.tap) * along.dilation
        nonlinear = (
            (ir.AffineExpr.get_mod(place, along.stride).maybe_downcast(), pitch),
            (ir.AffineExpr.get_floor_div(place, along.stride).maybe_downcast(), 1),
        )
    if across is not None:
        strides[across.output] = across.stride * along.stride * pitch
        strides[across.tap] = across.dilation * along.stride * pitch
    return replace(x, offset=0, strides=tuple(strides), nonlinear=nonlinear, padded=True)

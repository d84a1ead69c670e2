"""The memory of a register block: addresses of its cells, loads, stores and gathers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from metadef import ir

from .access import Access, FlatBuffer
from .body import Lanes, Val, constant_splat, lane_index
from .index_math import Index, add, mul, value
from .schedule import MOST_APART, Schedule
from .stage import Stage
from .transposed import is_transposed, transpose

Point = tuple[Index, ...]


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


@dataclass(frozen=True)
class CellMemory:
    """Reads and writes cells of one stage's blocks.

    `flat` gives the flat view of a buffer read by `memref.load` inside a body. The flat buffers in
    `streamed` are aligned to `vector_bytes` and stored past the cache.
    """

    schedule: Schedule
    flat: Callable[[ir.Value], FlatBuffer]
    streamed: frozenset[ir.Value] = frozenset()
    vector_bytes: int = 64

    def index(self, stage: Stage, dim: int, at: Cell) -> Val:
        d = stage.index_dims[dim]
        index = at.corner.point[d]
        if d == self.schedule.row_dim:
            index = add(index, at.row)
        if d == self.schedule.lanes:
            return lane_index(value(add(index, at.offset)))
        return Val("uniform", value(index))

    def address(self, x: Access, at: Cell) -> ir.Value:
        """Return the address of a cell's first lane: the corner's, and constant steps from it."""
        address = at.corner.address(x)
        row_dim, lanes = self.schedule.row_dim, self.schedule.lanes
        if row_dim is not None:
            address = add(address, mul(at.row, x.strides[row_dim]))
        if lanes is not None and not (isinstance(at.offset, int) and at.offset == 0):
            distance = x.lane_distance(lanes, at.offset, self.schedule.panel)
            assert distance is not None, "lanes along a dim that is not linear"
            address = add(address, distance)
        return value(address)

    def _lane_stride(self, x: Access, lanes: Lanes) -> Index:
        """Return how far apart the lanes are in memory (0: all lanes read one element)."""
        if lanes.width == 1 or self.schedule.lanes is None:
            return 0
        stride = x.lane_stride(self.schedule.lanes, lanes.width)
        assert stride is not None, "lanes along a dim that is not linear"
        return stride

    def load(self, x: Access, at: Cell, lanes: Lanes) -> Val:
        stride = self._lane_stride(x, lanes)
        address = self.address(x, at)
        if isinstance(stride, int) and stride == 0:
            return Val("uniform", ir.memref.load(x.buffer, [address]))
        if isinstance(stride, int) and stride == 1:
            whole = Lanes(lanes.width) if x.padded else lanes
            return load_contiguous(x.buffer, x.element, address, whole)
        if isinstance(stride, int) and 1 < stride <= MOST_APART and lanes.mask is None:
            return _load_apart(x.buffer, x.element, address, stride, lanes)
        addresses = [value(add(address, mul(stride, i))) for i in range(lanes.width)]
        return _load_scattered(x.buffer, x.element, addresses, lanes)

    def turns(self, x: Access, lanes: Lanes) -> bool:
        """Tell whether a whole square tile of an operand is loaded by rows and turned around."""
        rows, along = self.schedule.row_dim, self.schedule.lanes
        return (
            lanes.mask is None
            and rows is not None
            and along is not None
            and is_transposed(x, along, rows)
        )

    def load_turned(self, x: Access, at: Cell, lanes: Lanes) -> list[Val]:
        """Load the square tile whose first row is at `at`; return its rows."""
        address, stride = self.address(x, at), self._lane_stride(x, lanes)
        type_ = lanes.type(x.element)
        columns = [
            ir.vector.load(type_, x.buffer, [value(add(address, mul(stride, i)))])
            for i in range(lanes.width)
        ]
        return [Val("vector", row) for row in transpose(columns)]

    def store(self, x: Access, at: Cell, v: Val, lanes: Lanes) -> None:
        stride = self._lane_stride(x, lanes)
        address = self.address(x, at)
        if lanes.width == 1:
            ir.memref.store(v.value, x.buffer, [address])
            return
        vector = v.vector(lanes)
        if isinstance(stride, int) and stride == 1:
            if lanes.mask is None:
                past = x.buffer in self.streamed and isinstance(x.offset, int) and x.offset == 0
                ir.vector.store(
                    vector,
                    x.buffer,
                    [address],
                    nontemporal=True if past else None,
                    alignment=self.vector_bytes if past else None,
                )
            else:
                ir.vector.maskedstore(x.buffer, [address], lanes.mask, vector)
            return
        assert not (isinstance(stride, int) and stride == 0), "lanes stored on one element"
        assert lanes.mask is None or lanes.active is not None, "scattered store, unknown tail"
        for i in range(lanes.width if lanes.active is None else lanes.active):
            lane = ir.vector.extract(vector, [], [i])
            ir.memref.store(lane, x.buffer, [value(add(address, mul(stride, i)))])

    def gather(self, memref: ir.Value, indices: list[Val], lanes: Lanes) -> Val:
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
                return load_contiguous(flat.flat, element, value(address), lanes)
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


def load_contiguous(buffer: ir.Value, element: ir.Type, address: ir.Value, lanes: Lanes) -> Val:
    type_ = lanes.type(element)
    if lanes.mask is None:
        return Val("vector", ir.vector.load(type_, buffer, [address]))
    zero = constant_splat(type_, 0)
    return Val("vector", ir.vector.maskedload(type_, buffer, [address], lanes.mask, zero))


def _load_apart(
    buffer: ir.Value, element: ir.Type, address: ir.Value, stride: int, lanes: Lanes
) -> Val:
    """Load lanes `stride` elements apart: whole vectors, of which each lane is picked.

    The last vector ends with the last lane, so that nothing behind it is read.
    """
    type_, width = lanes.type(element), lanes.width
    last = stride * (width - 1) + 1 - width
    starts = [min(j * width, last) for j in range(stride)]
    picked: ir.Value | None = None
    for j, start in enumerate(starts):
        loaded = ir.vector.load(type_, buffer, [value(add(address, start))])
        places = [stride * i - start for i in range(width)]
        done = [i if j and stride * i < j * width else -1 for i in range(width)]
        lane = [d if d >= 0 else (p if p < width else 0) for d, p in zip(done, places, strict=True)]
        if picked is None:
            picked = ir.vector.shuffle(loaded, loaded, lane)
        else:
            mixed = [k if d >= 0 else width + k for d, k in zip(done, lane, strict=True)]
            picked = ir.vector.shuffle(picked, loaded, mixed)
    assert picked is not None
    return Val("vector", picked)


def _load_scattered(
    buffer: ir.Value, element: ir.Type, addresses: list[ir.Value], lanes: Lanes
) -> Val:
    active = lanes.width if lanes.active is None else lanes.active
    assert lanes.mask is None or lanes.active is not None, "scattered load with an unknown tail"
    elements = [ir.memref.load(buffer, [a]) for a in addresses[:active]]
    if active < lanes.width:
        elements += [constant_splat(element, 0)] * (lanes.width - active)
    return Val("vector", ir.vector.from_elements(lanes.type(element), elements))

"""Which dim becomes the lanes of a vector, which the rows of a register block, and how large.

Everything comes from the access pattern and the device's traits: lanes want a dim that outputs and
inputs walk with stride one; rows want a dim that some input does not move with, so that what is
loaded is used several times. The block fills the register file and leaves the smallest tails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod

from metadef import ir
from metadef.cost.register_block import Inputs, instructions_per_product
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

from .access import Access
from .body import (
    HEAVY_BODY_OPS,
    instructions,
    is_vectorizable,
    values_of,
    varying,
    widest_bits,
)
from .index_math import Index
from .stage import Stage
from .transposed import is_transposed, tile_rows

_IDENTITIES: dict[str, float | int | str] = {
    "arith.addf": 0.0, "arith.mulf": 1.0,
    "arith.maximumf": float("-inf"), "arith.minimumf": float("inf"),
    "arith.maxnumf": float("-inf"), "arith.minnumf": float("inf"),
    "arith.addi": 0, "arith.muli": 1,
    "arith.maxsi": "min", "arith.minsi": "max", "arith.maxui": 0, "arith.minui": -1,
    "arith.andi": -1, "arith.ori": 0, "arith.xori": 0,
}  # fmt: skip
#: the fold `select(x > running, x, running)`, which never takes a NaN
GREATEST = "greatest"

# What one element costs when its lanes are not neighbours in memory, against 1 for a vector load
# (one scalar load and one insert a lane), and when a square tile is turned around in registers.
_GATHER = 16
_TRANSPOSED = 4
# What folding the lanes of a vector costs.
_FOLD = 8
#: Lanes up to so many elements apart are picked from whole vectors.
MOST_APART = 4
_MAX_ROWS = 14
_PANEL_VECTORS = 2
_WIDE_PANEL_VECTORS = 4
_CHAINS = 4
_STREAMS = 4


@dataclass(frozen=True)
class Target:
    """The traits that vectorising asks for."""

    vector_bits: int = 512
    vector_registers: int = 32
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 1024 * 1024
    last_cache_bytes: int = 32 * 1024 * 1024
    cores: int = 1
    fuses_products: bool = True
    overwrites_operands: bool = False


@dataclass(frozen=True)
class Combiner:
    """How a reduction's body folds an element in: an op's name, or GREATEST, and its identity."""

    op: str
    identity: float | int


@dataclass(frozen=True)
class Schedule:
    """A stage's lanes, rows and block: `vectors` vectors of `width` lanes by `rows` rows.

    `lanes` is None for scalar code; `over_reduction` says that lanes run along a reduction dim.
    Where nothing is reduced, a vector is as wide as `chains` of the device's.
    """

    lanes: int | None
    over_reduction: bool
    width: int
    vectors: int
    row_dim: int | None
    rows: int
    chains: int = 1

    @property
    def panel(self) -> int:
        """The lanes of one block."""
        return self.width * self.vectors


def choose(
    stage: Stage,
    extents: tuple[Index, ...],
    target: Target,
    wanted: KernelChoice = BY_RULE,
    *,
    evenly: bool = False,
) -> Schedule:
    """Return the schedule of a stage whose dims run over `extents`.

    What is `wanted` of it is no larger than the stage, and `evenly`: the rows are in even blocks of
    at most so many; otherwise `legality` has seen to it that it can be.
    """
    width = target.vector_bits // widest_bits(_values(stage))
    lanes, over_reduction = _lanes(stage, extents, width, wanted)
    if lanes is None:
        return Schedule(None, False, 1, 1, None, 1)
    # What is the same in all lanes stays a scalar, and may be wider.
    more = target.vector_bits // widest_bits(_values_along(stage, lanes))
    if more > width and _lanes(stage, extents, more, wanted) == (lanes, over_reduction):
        width = more
    most_vectors = _at_most(wanted.vectors, extents[lanes], width)
    if not stage.reduction_dims:
        tile = tile_rows(stage, extents, lanes, width)
        if tile is not None:
            return Schedule(lanes, False, width, 1, tile, width)
        chains = most_vectors or _chains(stage, extents[lanes], lanes, width)
        return Schedule(lanes, False, width * chains, 1, None, 1, chains)
    row_dim = _choose_rows(stage, extents, lanes)
    rows = None if row_dim is None else _at_most(wanted.rows, extents[row_dim], 1)
    if evenly and rows is not None and row_dim is not None and isinstance(extents[row_dim], int):
        rows = even_block(extents[row_dim], rows)
    if over_reduction:
        rows = rows or (even_block(extents[row_dim], 4) if row_dim is not None else 1)
        vectors = wanted.vectors or (4 if rows == 1 else 2 if rows == 2 else 1)
        return Schedule(lanes, True, width, vectors, row_dim, rows)
    vectors = most_vectors or _vectors(stage, extents[lanes], lanes, width)
    if row_dim is None:
        if most_vectors is None:
            vectors *= _panels_at_once(stage, extents[lanes], lanes, width * vectors, target)
        return Schedule(lanes, False, width, vectors, None, 1)

    def block(vectors: int) -> Schedule:
        most = min(_MAX_ROWS, most_rows(stage, row_dim, lanes, vectors, target))
        of_block = rows or even_block(extents[row_dim], most)
        return Schedule(lanes, False, width, vectors, row_dim, of_block)

    usual = block(vectors)
    wide = replace(usual, vectors=_WIDE_PANEL_VECTORS, rows=rows or 1)
    if most_vectors is not None or not _may_be_wide(stage, extents, wide, target):
        return usual
    return min((usual, block(wide.vectors)), key=lambda s: _issued(stage, extents, s))


def most_rows(stage: Stage, row_dim: int, lanes: int, vectors: int, target: Target) -> int:
    """Return the rows whose sums, with what they are made of, fill the vector registers."""
    spare = 2 if _reused_rows(stage, row_dim, lanes) else 1
    most = (target.vector_registers - vectors - spare) // vectors
    if stage.sums_products and not target.fuses_products:
        # A product that is no part of its sum's instruction waits in a register of its own.
        most = min(most, max(1, target.vector_registers // 2 // vectors))
    return most


def possible_lanes(
    stage: Stage, extents: tuple[Index, ...], target: Target, *, within: float = inf
) -> list[int]:
    """Return the dims that can be the lanes' of a stage, that of the rules first; those whose price
    is `within` so many times the least."""
    width = target.vector_bits // widest_bits(_values(stage))
    prices = sorted(_lane_prices(stage, extents, width))
    return [-negative for price, _, negative in prices if price <= within * prices[0][0]]


def _lanes(
    stage: Stage, extents: tuple[Index, ...], width: int, wanted: KernelChoice
) -> tuple[int | None, bool]:
    if wanted.lanes is None:
        return _choose_lanes(stage, extents, width)
    return wanted.lanes, stage.reduction[wanted.lanes]


def _at_most(wanted: int | None, extent: Index, unit: int) -> int | None:
    """Return how many parts of `unit` are wanted, at most all that there are."""
    if wanted is None or not isinstance(extent, int):
        return wanted
    return min(wanted, max(1, -(-extent // unit)))


def combiners(stage: Stage) -> list[Combiner | None]:
    """Return for each output how its body folds, or None where it is no plain fold."""
    block = stage.body
    ops = list(block.operations)
    yielded = ops[-1].operation.operands
    found: list[Combiner | None] = []
    for k, v in enumerate(yielded):
        running = block.arguments[len(stage.inputs) + k]
        producer = None if isinstance(v, ir.BlockArgument) else v.owner.operation
        if producer is not None and _is_greatest(producer, running):
            found.append(Combiner(GREATEST, float("-inf")))
            continue
        if (
            producer is None
            or producer.name not in _IDENTITIES
            or list(producer.operands).count(running) != 1
            or len(list(running.uses)) != 1
        ):
            found.append(None)
            continue
        identity = _IDENTITIES[producer.name]
        if isinstance(identity, str):
            bits = ir.IntegerType(v.type).width
            identity = -(2 ** (bits - 1)) if identity == "min" else 2 ** (bits - 1) - 1
        found.append(Combiner(producer.name, identity))
    return found


def _values(stage: Stage) -> set[ir.Value]:
    """Return the values of a stage's bodies."""
    return values_of(stage.body) | (values_of(stage.epilogue.body) if stage.epilogue else set())


def _values_along(stage: Stage, lanes: int) -> set[ir.Value]:
    """Return the values of a stage's bodies that differ from lane to lane."""
    moving = {k for k, x in enumerate(stage.inputs) if isinstance(x, Access) and x.moves(lanes)}
    moving |= {len(stage.inputs) + k for k in range(len(stage.outputs))}
    indices = {original for original, d in stage.index_dims.items() if d == lanes}
    found = varying(stage.body, moving, indices)
    if stage.epilogue is not None:
        found |= _values_along(stage.epilogue, lanes)
    return found


def _is_greatest(op: ir.Operation, running: ir.Value) -> bool:
    """Tell whether an op is select(x > running, x, running), and reads `running` alone."""
    condition = op.operands[0] if op.name == "arith.select" else None
    if condition is None or isinstance(condition, ir.BlockArgument):
        return False
    compared = condition.owner.operation
    return (
        compared.name == "arith.cmpf"
        and ir.IntegerAttr(compared.attributes["predicate"]).value == ir.arith.CmpFPredicate.OGT
        and list(compared.operands) == list(op.operands)[1:]
        and op.operands[2] == running
        and len(list(running.uses)) == len([compared, op])
    )


def _choose_lanes(stage: Stage, extents: tuple[Index, ...], width: int) -> tuple[int | None, bool]:
    prices = _lane_prices(stage, extents, width)
    if not prices:
        return None, False
    # Equal prices: lanes along a parallel dim, and the innermost of those.
    _, over_reduction, negative = min(prices)
    return -negative, over_reduction


def _lane_prices(
    stage: Stage, extents: tuple[Index, ...], width: int
) -> list[tuple[float, bool, int]]:
    """Return for each dim that can be the lanes' its price, whether it is reduced, and minus its
    number."""
    bodies = [stage.body] + ([stage.epilogue.body] if stage.epilogue else [])
    if width < 2 or not all(is_vectorizable(b) for b in bodies):
        return []
    folds = all(c is not None or not stage.accumulates(k) for k, c in enumerate(combiners(stage)))
    candidates: list[tuple[float, bool, int]] = []
    for d, extent in enumerate(extents):
        over_reduction = stage.reduction[d]
        if extent == 1 or (over_reduction and not folds):
            continue
        if stage.inside and (over_reduction or any(w.output == d for w in stage.inside)):
            continue
        price = _price(stage, extents, d, over_reduction, width)
        if price is None:
            continue
        if isinstance(extent, int) and extent < width:
            price *= width / max(extent, 1)
        if over_reduction:
            price += _price_of_fold(stage, extents, d, width)
        candidates.append((price, over_reduction, -d))
    return candidates


def _price(
    stage: Stage, extents: tuple[Index, ...], dim: int, over_reduction: bool, width: int
) -> float | None:
    """Return the cost of one step with lanes along `dim`: vector loads, gathers, scatters."""
    price = 0.25
    tile = tile_rows(stage, extents, dim, width)
    for x in _inner_accesses(stage):
        stride = x.lane_stride(dim, width)
        if stride is None:
            return None
        if isinstance(stride, int) and stride == 0:
            continue
        if isinstance(stride, int) and stride == 1:
            price += 1
        else:
            price += _price_apart(stage, x, dim, tile)
    outer = stage.epilogue.outputs if stage.epilogue else stage.outputs
    for x in outer:
        stride = x.lane_stride(dim, width)
        if stride is None:
            return None
        if over_reduction or any(x is y for y in _inner_accesses(stage)):
            continue
        if not (isinstance(stride, int) and stride in (0, 1)):
            # Stored once for a whole reduction: dear only when there is none.
            price += _GATHER / (4 if stage.reduction_dims else 1)
    return price


def _price_of_fold(stage: Stage, extents: tuple[Index, ...], dim: int, width: int) -> float:
    """Return what a step costs more with lanes along reduction dim `dim`: a masked last vector,
    and its share of folding the lanes in the end."""
    extent = extents[dim]
    if not isinstance(extent, int):
        return 0
    steps = -(-extent // width)
    masked = 1 if extent % width else 0
    others = [extents[d] for d in stage.reduction_dims if d != dim]
    turns = prod(e if isinstance(e, int) else _MAX_ROWS for e in others)
    return masked / steps + _FOLD / (steps * max(turns, 1))


def _price_apart(stage: Stage, x: Access, lanes: int, tile: int | None) -> float:
    """Return the cost of reading or writing lanes that are not neighbours in memory."""
    if x in stage.outputs:
        return _GATHER
    if tile is not None and is_transposed(x, lanes, tile):
        return _TRANSPOSED
    stride = x.strides[lanes]
    near = not x.is_nonlinear(lanes) and isinstance(stride, int) and 1 < stride <= MOST_APART
    return 2 * stride - 1 if near and isinstance(stride, int) else _GATHER


def _inner_accesses(stage: Stage) -> list[Access]:
    """Return the accesses that happen in the innermost loop."""
    found = [x for x in stage.inputs if isinstance(x, Access)]
    if not stage.reduction_dims:
        return found + stage.outputs
    return found + [x for k, x in enumerate(stage.outputs) if not stage.accumulates(k)]


def _choose_rows(stage: Stage, extents: tuple[Index, ...], lanes: int) -> int | None:
    """Return the parallel dim along which most operands are reused, the longest of them."""
    best: tuple[int, int, int] | None = None
    for d in stage.parallel_dims:
        if d == lanes or extents[d] == 1:
            continue
        reused = _reused_rows(stage, d, lanes)
        linear = not any(x.is_nonlinear(d) for x in stage.accesses())
        if not reused or not linear:
            continue
        extent = extents[d]
        size = min(extent if isinstance(extent, int) else _MAX_ROWS, _MAX_ROWS)
        candidate = (reused, size, d)
        if best is None or candidate > best:
            best = candidate
    return best[2] if best else None


def _reused_rows(stage: Stage, dim: int, lanes: int) -> int:
    """Count the inputs that move with the lanes or the reduction but not with `dim`."""
    moving = [lanes, *stage.reduction_dims]
    inputs = [x for x in stage.inputs if isinstance(x, Access)]
    return len([x for x in inputs if not x.moves(dim) and any(x.moves(d) for d in moving)])


def _vectors(stage: Stage, extent: Index, lanes: int, width: int) -> int:
    """Return how many vectors a block has side by side: two, one where the dim is narrow."""
    most = _PANEL_VECTORS if stage.reduction_dims else 1
    if isinstance(extent, int):
        most = min(most, max(1, -(-extent // width)))
    while most > 1 and any(x.lane_stride(lanes, most * width) is None for x in stage.accesses()):
        most -= 1
    return most


def _may_be_wide(stage: Stage, extents: tuple[Index, ...], wide: Schedule, target: Target) -> bool:
    """Tell whether a block may be as wide as `wide`, and its width changes what it issues."""
    assert wide.lanes is not None and wide.row_dim is not None
    if not target.overwrites_operands or not stage.sums_products:
        return False
    extent, panel = extents[wide.lanes], wide.panel
    return (
        wide.rows <= most_rows(stage, wide.row_dim, wide.lanes, wide.vectors, target)
        and not (isinstance(extent, int) and extent < panel)
        and all(x.lane_distance(wide.lanes, panel - 1, panel) is not None for x in stage.accesses())
    )


def _issued(stage: Stage, extents: tuple[Index, ...], block: Schedule) -> float:
    """Return the instructions for each product of a block, with those of its part that lies beyond
    the ends of the dims."""
    lanes, row_dim = block.lanes, block.row_dim
    assert lanes is not None and row_dim is not None
    inputs = [x for x in stage.inputs if isinstance(x, Access)]
    moves = [(x.moves(lanes), x.moves(row_dim)) for x in inputs]
    of_each = map(moves.count, [(True, False), (False, True), (True, True)])
    issued = instructions_per_product(block.rows, block.vectors, Inputs(*of_each))
    for extent, unit in ((extents[lanes], block.panel), (extents[row_dim], block.rows)):
        if isinstance(extent, int):
            issued *= -(-extent // unit) * unit / extent
    return issued


def _panels_at_once(stage: Stage, extent: Index, lanes: int, panel: int, target: Target) -> int:
    """Return how many panels a product of one row reads side by side.

    It waits for memory, which serves several long streams faster than one, and the sums of several
    panels keep the multiply-add units busy. Of several cores each has two blocks or more.
    """
    if not isinstance(extent, int):
        return 1
    blocks = 2 * target.cores if target.cores > 1 else 1
    count = _STREAMS
    while count > 1 and (
        extent < blocks * count * panel
        or any(
            x.lane_distance(lanes, count * panel - 1, count * panel) is None
            for x in stage.accesses()
        )
    ):
        count //= 2
    return count


def _chains(stage: Stage, extent: Index, lanes: int, width: int) -> int:
    """Return how many vectors a pointwise body is evaluated on at once.

    A polynomial is a chain of operations that wait for one another: more chains fill the gaps. A
    body with many results, as a transform of a tile has, is many chains by itself.
    """
    heavy = instructions(stage.body) > HEAVY_BODY_OPS
    count = max(1, _CHAINS // len(stage.outputs)) if heavy else 1
    while count > 1 and (
        (isinstance(extent, int) and extent < count * width)
        or any(x.lane_stride(lanes, count * width) is None for x in stage.accesses())
    ):
        count //= 2
    return count


def even_block(extent: Index, most: int) -> int:
    """Split `extent` rows in the fewest blocks of at most `most`, as even as can be."""
    if not isinstance(extent, int):
        return min(12, most)
    blocks = max(1, -(-extent // most))
    return -(-extent // blocks)

"""Square tiles of an operand whose rows, not its lanes, are neighbours in memory.

Such an operand is loaded a vector a lane, each along the rows, and turned around in registers.
"""

from __future__ import annotations

from metadef import ir

from .access import Access
from .body import HEAVY_BODY_OPS, instructions
from .index_math import Index
from .stage import Stage

#: Turns of the lanes' and the rows' loops of one task: pages of the source that a task walks, and
#: whole cache lines of each.
BOX = 64


def is_transposed(x: Access, lanes: int, rows: int) -> bool:
    """Tell whether `x` has its neighbours along `rows` and a fixed distance along `lanes`."""
    if x.is_nonlinear(lanes) or x.is_nonlinear(rows):
        return False
    along_rows, along_lanes = x.strides[rows], x.strides[lanes]
    return (
        isinstance(along_rows, int)
        and along_rows == 1
        and not (isinstance(along_lanes, int) and along_lanes in (0, 1))
    )


def tile_rows(stage: Stage, extents: tuple[Index, ...], lanes: int, width: int) -> int | None:
    """Return the dim along which square tiles of `width` make the inputs' loads contiguous.

    A heavy body is not worth a copy for each row of a tile.
    """
    if stage.reduction_dims or instructions(stage.body) > HEAVY_BODY_OPS:
        return None
    for d in stage.parallel_dims:
        extent = extents[d]
        if d == lanes or (isinstance(extent, int) and extent < width):
            continue
        inputs = [x for x in stage.inputs if isinstance(x, Access)]
        linear = not any(x.is_nonlinear(d) for x in stage.accesses())
        if linear and any(is_transposed(x, lanes, d) for x in inputs):
            return d
    return None


def transpose(vectors: list[ir.Value]) -> list[ir.Value]:
    """Return the columns of a square tile given by rows: blocks swap places, halved each round."""
    width = len(vectors)
    half = width // 2
    while half:
        low = [i if i // half % 2 == 0 else width + i - half for i in range(width)]
        high = [i + half if i // half % 2 == 0 else width + i for i in range(width)]
        turned = list(vectors)
        for i in range(width):
            if i // half % 2 == 0:
                turned[i] = ir.vector.shuffle(vectors[i], vectors[i + half], low)
                turned[i + half] = ir.vector.shuffle(vectors[i], vectors[i + half], high)
        vectors, half = turned, half // 2
    return vectors

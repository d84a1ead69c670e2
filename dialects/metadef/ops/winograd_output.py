"""`metadef.winograd_output`: an image from the products of its transformed tiles."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.winograd import POINTS, inputs_of
from metadef.symbolic import Dim, same

C1 = constraint("winograd_output-C1", "x is [P, N, I, J, C] of floats")
C2 = constraint("winograd_output-C2", f"tile is one of {', '.join(map(str, POINTS))}")
C3 = constraint("winograd_output-C3", "P is (tile + 2)^2")
C4 = constraint("winograd_output-C4", "I and J tiles just cover the two sizes, 1 or more")


def infer(x: Shaped, tile: int, sizes: Sequence[int]) -> Shaped:
    """Return [N, *sizes, C]."""
    C1.check(x.rank == 5 and isinstance(x.element, ir.FloatType), str(x))
    C2.check(tile in POINTS, str(tile))
    C3.check(same(x.dims[0], inputs_of(tile) ** 2) is not False, f"{x} for tile {tile}")
    tiles = [Dim.of(-(-s // tile)) for s in sizes]
    fits = len(sizes) == 2 and min(sizes) >= 1 and list(x.dims[2:4]) == tiles
    C4.check(fits, f"{x} for {list(sizes)} and tile {tile}")
    return x.with_dims([x.dims[1], *sizes, x.dims[4]])


class WinogradOutputOp(MetadefOp, name="winograd_output", traits=[ir.ext.Pure]):
    """A m A' of each tile m of x [P, N, I, J, C], `tile` outputs each way (`winograd.py`).

    The tiles lie side by side in the result [N, *sizes, C], the last ones cut off at its edge.
    """

    x: Operand
    result: Result
    tile: ir.IntegerAttr
    sizes: Any

    constraints = (C1, C2, C3, C4)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), integer(self, "tile"), integers(self, "sizes"))]


def winograd_output(x: ir.Value, tile: int, sizes: Sequence[int]) -> ir.Value:
    """Build the image of `sizes` from the products of its tiles."""
    sizes = list(sizes)
    shape = infer(shape_of(x), tile, sizes)
    return build(WinogradOutputOp, [x], [shape], tile=tile, sizes=sizes)

"""`metadef.winograd_input`: tiles of an image, transformed for products instead of windows."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.windows import windows
from metadef.dialects.metadef.winograd import POINTS, WINDOW, inputs_of

C1 = constraint("winograd_input-C1", "x is [N, H, W, C] of floats, H and W static")
C2 = constraint("winograd_input-C2", f"tile is one of {', '.join(map(str, POINTS))}")
C3 = constraint("winograd_input-C3", "padding is (low, high) of H and W, 0 or more")
C4 = constraint("winograd_input-C4", "the padded image holds a window")


def infer(x: Shaped, tile: int, padding: Sequence[int]) -> Shaped:
    """Return [(tile + 2)^2, N, tiles along H, tiles along W, C]."""
    known = x.rank == 4 and x.dims[1].is_static and x.dims[2].is_static
    C1.check(known and isinstance(x.element, ir.FloatType), str(x))
    C2.check(tile in POINTS, str(tile))
    C3.check(len(padding) == 4 and min(padding) >= 0, str(list(padding)))
    sizes = windows(x.dims[1:3], [WINDOW] * 2, [1, 1], padding, [1, 1])
    C4.check(min(s.value for s in sizes) >= 1, f"{x}, padding {list(padding)}")
    tiles = [(s + tile - 1) // tile for s in sizes]
    return x.with_dims([inputs_of(tile) ** 2, x.dims[0], *tiles, x.dims[3]])


class WinogradInputOp(MetadefOp, name="winograd_input", traits=[ir.ext.Pure]):
    """B d B' of each tile d of x [N, H, W, C], for 3x3 windows one apart (`winograd.py`).

    Tiles of (tile + 2)^2 elements begin `tile` apart, the first one in the low padding; what they
    read outside x is 0. Result [p, n, i, j, c]: element p (row by row) of tile (i, j).
    """

    x: Operand
    result: Result
    tile: ir.IntegerAttr
    padding: Any

    constraints = (C1, C2, C3, C4)

    def infer_results(self) -> list[Shaped]:
        return [infer(shape_of(self.x), integer(self, "tile"), integers(self, "padding"))]


def winograd_input(x: ir.Value, tile: int, padding: Sequence[int]) -> ir.Value:
    """Build the transformed tiles of x."""
    padding = list(padding)
    shape = infer(shape_of(x), tile, padding)
    return build(WinogradInputOp, [x], [shape], tile=tile, padding=padding)

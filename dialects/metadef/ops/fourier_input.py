"""`metadef.fourier_input`: tiles of an image along one axis, as spectra."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.fourier import LENGTHS, points_of
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.windows import windows

C1 = constraint("fourier_input-C1", "x is [N, H, W, C] of floats, axis 1 or 2 and static")
C2 = constraint("fourier_input-C2", f"length is one of {', '.join(map(str, LENGTHS))}")
C3 = constraint("fourier_input-C3", "window is 1 to length")
C4 = constraint("fourier_input-C4", "padding is (low, high), 0 or more")
C5 = constraint("fourier_input-C5", "the padded axis holds a window")


def infer(x: Shaped, axis: int, length: int, window: int, padding: Sequence[int]) -> Shaped:
    """Return [3 length / 2 - 1, ...x with tiles at the axis]."""
    known = x.rank == 4 and axis in (1, 2) and x.dims[axis].is_static
    C1.check(known and isinstance(x.element, ir.FloatType), f"{x}, axis {axis}")
    C2.check(length in LENGTHS, str(length))
    C3.check(1 <= window <= length, f"{window} for {length}")
    C4.check(len(padding) == 2 and min(padding) >= 0, str(list(padding)))
    (size,) = windows(x.dims[axis : axis + 1], [window], [1], padding, [1])
    C5.check(size.value >= 1, f"{x}, axis {axis}, padding {list(padding)}, window {window}")
    dims = list(x.dims)
    dims[axis] = -(-size // (length - window + 1))
    return x.with_dims([points_of(length), *dims])


class FourierInputOp(MetadefOp, name="fourier_input", traits=[ir.ext.Pure]):
    """The spectrum of each tile of x [N, H, W, C] along an axis, for windows (`fourier.py`).

    Tiles of `length` elements begin `length - window + 1` apart, the first one in the low padding;
    what they read outside x is 0. Result [p, n, i, w, c] (axis 1): point p of tile i.
    """

    x: Operand
    result: Result
    axis: ir.IntegerAttr
    length: ir.IntegerAttr
    window: ir.IntegerAttr
    padding: Any

    constraints = (C1, C2, C3, C4, C5)

    def infer_results(self) -> list[Shaped]:
        axis, length, window = (integer(self, name) for name in ("axis", "length", "window"))
        return [infer(shape_of(self.x), axis, length, window, integers(self, "padding"))]


def fourier_input(
    x: ir.Value, axis: int, length: int, window: int, padding: Sequence[int] = (0, 0)
) -> ir.Value:
    """Build the spectra of the tiles of x along an axis."""
    shape = infer(shape_of(x), axis, length, window, padding)
    sizes = {"axis": axis, "length": length, "window": window}
    return build(FourierInputOp, [x], [shape], **sizes, padding=list(padding))

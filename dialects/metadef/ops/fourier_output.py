"""`metadef.fourier_output`: an axis of an image from the products of its tiles' spectra."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer
from metadef.dialects.metadef.fourier import LENGTHS, points_of
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.symbolic import Dim, same

C1 = constraint("fourier_output-C1", "x is [P, N, H, W, C] of floats, axis 1 or 2")
C2 = constraint("fourier_output-C2", f"length is one of {', '.join(map(str, LENGTHS))}")
C3 = constraint("fourier_output-C3", "window is 1 to length")
C4 = constraint("fourier_output-C4", "P is 3 length / 2 - 1")
C5 = constraint("fourier_output-C5", "the tiles just cover the size, 1 or more")


def infer(x: Shaped, axis: int, length: int, window: int, size: int) -> Shaped:
    """Return x without P, with `size` at the axis."""
    known = x.rank == 5 and axis in (1, 2)
    C1.check(known and isinstance(x.element, ir.FloatType), f"{x}, axis {axis}")
    C2.check(length in LENGTHS, str(length))
    C3.check(1 <= window <= length, f"{window} for {length}")
    C4.check(same(x.dims[0], points_of(length)) is not False, f"{x} for length {length}")
    tiles = Dim.of(-(-size // (length - window + 1)))
    C5.check(size >= 1 and x.dims[axis + 1] == tiles, f"{x} for {size} along axis {axis}")
    dims = list(x.dims[1:])
    dims[axis] = Dim.of(size)
    return x.with_dims(dims)


class FourierOutputOp(MetadefOp, name="fourier_output", traits=[ir.ext.Pure]):
    """The windows' sums, times `length`, from products of spectra along an axis (`fourier.py`).

    Those of a tile are the last `length - window + 1` of its signal: the others have gone around.
    They lie side by side in the result [N, H, W, C], the last ones cut off at `size`.
    """

    x: Operand
    result: Result
    axis: ir.IntegerAttr
    length: ir.IntegerAttr
    window: ir.IntegerAttr
    size: ir.IntegerAttr

    constraints = (C1, C2, C3, C4, C5)

    def infer_results(self) -> list[Shaped]:
        numbers = (integer(self, name) for name in ("axis", "length", "window", "size"))
        return [infer(shape_of(self.x), *numbers)]


def fourier_output(x: ir.Value, axis: int, length: int, window: int, size: int) -> ir.Value:
    """Build an axis of `size` from the products of its tiles' spectra."""
    shape = infer(shape_of(x), axis, length, window, size)
    sizes = {"axis": axis, "length": length, "window": window, "size": size}
    return build(FourierOutputOp, [x], [shape], **sizes)

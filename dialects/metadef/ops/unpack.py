"""`metadef.unpack`: read a dim that is stored in panels."""

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.symbolic import Dim

C1 = constraint("unpack-C1", "x has rank 2 or more, and its last dim, the panel, is static")
C2 = constraint("unpack-C2", "dim is an axis of the result, at an axis of x but its last")
C3 = constraint("unpack-C3", "size fits in the panels")


def infer(x: Shaped, dim: int, at: int, size: int) -> Shaped:
    """Return x's dims without the panels' two, and `size` as dim `dim`."""
    C1.check(x.rank >= 2 and x.dims[-1].is_static, str(x))
    C2.check(0 <= dim < x.rank - 1 and 0 <= at < x.rank - 1, f"dim {dim} and at {at} for {x}")
    panels = x.dims[at]
    fits = not panels.is_static or 0 <= size <= panels.value * x.dims[-1].value
    C3.check(fits, f"{size} in {panels} panels of {x.dims[-1]}")
    kept = [d for i, d in enumerate(x.dims[:-1]) if i != at]
    return x.with_dims([*kept[:dim], Dim.of(size), *kept[dim:]])


class UnpackOp(MetadefOp, name="unpack", traits=[ir.ext.Pure]):
    """The inverse of packing dim `dim` in panels: [K, N] from [N/w, K, w] for dim 1, at 0.

    Element (.., n, ..) of the result is x at (n // w) along axis `at` and (n % w) along the last
    axis, w its extent. `size` is the extent of the result's dim: the last panel may be padded.
    A view: kernels that read weights in panels absorb it, and nothing is moved.
    """

    x: Operand
    result: Result
    dim: ir.IntegerAttr
    at: ir.IntegerAttr
    size: ir.IntegerAttr

    constraints = (C1, C2, C3)

    def infer_results(self) -> list[Shaped]:
        return [
            infer(
                shape_of(self.x), integer(self, "dim"), integer(self, "at"), integer(self, "size")
            )
        ]


def unpack(x: ir.Value, dim: int, at: int, size: int) -> ir.Value:
    """Build the view of x with dim `dim`, `size` elements, read from panels along axis `at`."""
    return build(UnpackOp, [x], [infer(shape_of(x), dim, at, size)], dim=dim, at=at, size=size)

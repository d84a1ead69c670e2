"""`metadef.pool`: maximum or mean over sliding windows."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, choice, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.windows import LAYOUTS, given_or, spatial_axes, windows

FNS = ("max", "avg")

C1 = constraint("pool-C1", "x has batch, channel and spatial dims")
C2 = constraint("pool-C2", "kernel, strides, dilations have one entry a spatial dim, padding two")
C3 = constraint("pool-C3", "kernel, strides and dilations are positive")
C4 = constraint("pool-C4", "the padded input holds the dilated kernel")
C5 = constraint("pool-C5", "avg is of floats, max of numbers")


def infer(
    fn: str,
    x: Shaped,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    layout: str,
) -> Shaped:
    """Return x with its spatial dims replaced by the number of windows."""
    spatial = x.rank - 2
    C1.check(spatial >= 1, str(x))
    if not len(kernel) == len(strides) == len(dilations) == spatial or len(padding) != 2 * spatial:
        raise C2.broken(f"{list(kernel)}, {list(strides)}, {list(dilations)}, {list(padding)}")
    if min(*kernel, *strides, *dilations) < 1:
        raise C3.broken(f"{list(kernel)}, {list(strides)}, {list(dilations)}")
    kind = kind_of(x.element)
    C5.check(kind == "float" or (fn == "max" and kind == "int"), f"'{fn}' on {x.element}")
    axes = spatial_axes(layout, x.rank)
    dims = list(x.dims)
    sizes = windows([dims[i] for i in axes], kernel, strides, padding, dilations)
    for i, size in zip(axes, sizes, strict=True):
        C4.check(not size.is_static or size.value >= 0, f"an output dim of {size}")
        dims[i] = size
    return x.with_dims(dims)


class PoolOp(MetadefOp, name="pool", traits=[ir.ext.Pure]):
    """`fn` over spatial windows of x, [N, C, spatial..] (nchw) or [N, spatial.., C] (nhwc).

    max: padding never wins, NaN does; avg: the divisor counts padding with `count_include_pad`.
    `padding` is (low, high) for each spatial dim, and all of it is padding that avg may count:
    torch's ceil mode, whose extra windows count less, is for the converter to express otherwise.
    """

    x: Operand
    result: Result
    fn: ir.StringAttr
    kernel: Any
    strides: Any
    padding: Any
    dilations: Any
    count_include_pad: Any
    layout: ir.StringAttr

    constraints = (C1, C2, C3, C4, C5)

    def infer_results(self) -> list[Shaped]:
        boolean(self, "count_include_pad")
        return [
            infer(
                choice(self, "fn", FNS),
                shape_of(self.x),
                integers(self, "kernel"),
                integers(self, "strides"),
                integers(self, "padding"),
                integers(self, "dilations"),
                choice(self, "layout", LAYOUTS),
            )
        ]


def pool(
    fn: str,
    x: ir.Value,
    kernel: Sequence[int],
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    count_include_pad: bool = True,
    layout: str = "nchw",
) -> ir.Value:
    """Build a pooling; strides are the kernel, dilations 1 and padding 0 when not given."""
    spatial = len(kernel)
    kernel = list(kernel)
    strides = list(strides) if strides is not None else kernel
    padding = given_or(padding, 0, 2 * spatial)
    dilations = given_or(dilations, 1, spatial)
    return build(
        PoolOp,
        [x],
        [infer(fn, shape_of(x), kernel, strides, padding, dilations, layout)],
        fn=fn,
        kernel=kernel,
        strides=strides,
        padding=padding,
        dilations=dilations,
        count_include_pad=count_include_pad,
        layout=layout,
    )

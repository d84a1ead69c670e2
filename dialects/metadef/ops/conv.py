"""`metadef.conv`: convolution over any number of spatial dims."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import choice, integer, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.windows import LAYOUTS, channel_axis, given_or, spatial_axes, windows
from metadef.symbolic import Dim, same

C1 = constraint("conv-C1", "x has batch, channel and spatial dims, w has rank + 1 in nhwc")
C2 = constraint("conv-C2", "strides, dilations have one entry a spatial dim, padding two")
C3 = constraint("conv-C3", "strides, dilations and groups are positive")
C4 = constraint("conv-C4", "channels of x are groups times those of w")
C5 = constraint("conv-C5", "output channels are a multiple of groups")
C6 = constraint("conv-C6", "bias is [O]")
C7 = constraint("conv-C7", "the padded input holds the dilated kernel")
C8 = constraint("conv-C8", "operands have one element type")


def infer(
    x: Shaped,
    w: Shaped,
    bias: Shaped | None,
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    layout: str,
) -> Shaped:
    """Return [N, O, spatial..] (nchw) or [N, spatial.., O] (nhwc)."""
    spatial = x.rank - 2
    C1.check(spatial >= 1 and w.rank == x.rank + (layout == "nhwc"), f"{x} and {w} in {layout}")
    if not len(strides) == len(dilations) == spatial or len(padding) != 2 * spatial:
        raise C2.broken(f"{list(strides)}, {list(dilations)}, {list(padding)} for {x}")
    if min(*strides, *dilations, groups) < 1:
        raise C3.broken(f"{list(strides)}, {list(dilations)}, {groups}")
    for operand in (w, bias):
        if operand is not None and operand.element != x.element:
            raise C8.broken(f"{x.element} and {operand.element}")
    if layout == "nchw":
        out, per_group, kernel = w.dims[0], w.dims[1], w.dims[2:]
        C5.check(not out.is_static or out.value % groups == 0, f"{out} for {groups} groups")
    else:
        if same(w.dims[0], groups) is False:
            raise C5.broken(f"{w} for {groups} groups")
        out, per_group, kernel = w.dims[-1] * groups, w.dims[-2], w.dims[1:-2]
    channels = x.dims[channel_axis(layout, x.rank)]
    if same(channels, per_group * groups) is False:
        raise C4.broken(f"{channels} channels of {x}, {groups} groups of {per_group} of {w}")
    if bias is not None and (bias.rank != 1 or same(bias.dims[0], out) is False):
        raise C6.broken(f"{bias} for O={out}")
    sizes = windows(
        [x.dims[i] for i in spatial_axes(layout, x.rank)], kernel, strides, padding, dilations
    )
    for size in sizes:
        C7.check(not size.is_static or size.value >= 0, f"an output dim of {size}")
    return x.with_dims(arrange(layout, x.dims[0], out, sizes))


def arrange(layout: str, batch: Dim, channels: Dim, spatial: Sequence[Dim]) -> list[Dim]:
    """Return batch, channel and spatial dims in the order of `layout`."""
    return [batch, channels, *spatial] if layout == "nchw" else [batch, *spatial, channels]


class ConvOp(MetadefOp, name="conv", traits=[ir.ext.Pure]):
    """Cross-correlation of x with w, plus bias [O].

    nchw: x [N, C, spatial..], w [O, C/groups, spatial..], result [N, O, spatial..];
    nhwc: x [N, spatial.., C], w [groups, spatial.., C/groups, O/groups], result [N, spatial.., O].
    `padding` is (low, high) for each spatial dim, of zeros.
    """

    x: Operand
    w: Operand
    bias: Operand | None
    result: Result
    strides: Any
    padding: Any
    dilations: Any
    groups: ir.IntegerAttr
    layout: ir.StringAttr

    constraints = (C1, C2, C3, C4, C5, C6, C7, C8)

    def infer_results(self) -> list[Shaped]:
        return [
            infer(
                shape_of(self.x),
                shape_of(self.w),
                None if self.bias is None else shape_of(self.bias),
                integers(self, "strides"),
                integers(self, "padding"),
                integers(self, "dilations"),
                integer(self, "groups"),
                choice(self, "layout", LAYOUTS),
            )
        ]


def conv(
    x: ir.Value,
    w: ir.Value,
    bias: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    layout: str = "nchw",
) -> ir.Value:
    """Build a convolution; strides and dilations are 1, padding 0 when not given."""
    shape = shape_of(x)
    spatial = shape.rank - 2
    strides = given_or(strides, 1, spatial)
    padding = given_or(padding, 0, 2 * spatial)
    dilations = given_or(dilations, 1, spatial)
    b = None if bias is None else shape_of(bias)
    return build(
        ConvOp,
        [x, w] if bias is None else [x, w, bias],
        [infer(shape, shape_of(w), b, strides, padding, dilations, groups, layout)],
        strides=strides,
        padding=padding,
        dilations=dilations,
        groups=groups,
        layout=layout,
    )

"""`metadef.conv_transpose`: the gradient of a convolution by its input."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import integer, integers
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.dialects.metadef.windows import given_or
from metadef.symbolic import same

C1 = constraint("conv_transpose-C1", "x and w have equal rank, with batch, channel, spatial dims")
C2 = constraint(
    "conv_transpose-C2", "strides, dilations, output_padding have one entry a dim, padding two"
)
C3 = constraint("conv_transpose-C3", "strides, dilations, groups are positive, and groups divide I")
C4 = constraint("conv_transpose-C4", "channels of x are the first dim of w")
C5 = constraint("conv_transpose-C5", "bias is [O]")
C6 = constraint("conv_transpose-C6", "operands have one element type")
C7 = constraint("conv_transpose-C7", "no dim of the result is negative")


def infer(
    x: Shaped,
    w: Shaped,
    bias: Shaped | None,
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int],
    groups: int,
    output_padding: Sequence[int],
) -> Shaped:
    """Return [N, O, spatial..].

    A spatial dim is `(size - 1) * stride - low - high + dilation * (kernel - 1) + extra + 1`.
    """
    spatial = x.rank - 2
    C1.check(spatial >= 1 and w.rank == x.rank, f"{x} and {w}")
    if (
        not len(strides) == len(dilations) == len(output_padding) == spatial
        or len(padding) != 2 * spatial
    ):
        raise C2.broken(f"{list(strides)}, {list(dilations)}, {list(output_padding)} for {x}")
    channels = w.dims[0]
    if min(*strides, *dilations, groups) < 1 or (channels.is_static and channels.value % groups):
        raise C3.broken(f"{list(strides)}, {list(dilations)}, {groups}")
    if same(x.dims[1], channels) is False:
        raise C4.broken(f"{x} and {w}")
    out = w.dims[1] * groups
    if bias is not None and (bias.rank != 1 or same(bias.dims[0], out) is False):
        raise C5.broken(f"{bias} for O={out}")
    for operand in (w, bias):
        if operand is not None and operand.element != x.element:
            raise C6.broken(f"{x.element} and {operand.element}")
    sizes = [
        (x.dims[i + 2] - 1) * strides[i]
        + (w.dims[i + 2] - 1) * dilations[i]
        + (output_padding[i] + 1 - padding[2 * i] - padding[2 * i + 1])
        for i in range(spatial)
    ]
    for size in sizes:
        C7.check(not size.is_static or size.value >= 0, str(size))
    return x.with_dims([x.dims[0], out, *sizes])


class ConvTransposeOp(MetadefOp, name="conv_transpose", traits=[ir.ext.Pure]):
    """x [N, I, spatial..] spread by w [I, O/groups, spatial..] to [N, O, spatial..], plus bias [O].

    As torch.nn.functional.conv_transpose; `padding` (low, high for each dim) cuts the result,
    `output_padding` adds to its high end.
    """

    x: Operand
    w: Operand
    bias: Operand | None
    result: Result
    strides: Any
    padding: Any
    dilations: Any
    groups: ir.IntegerAttr
    output_padding: Any

    constraints = (C1, C2, C3, C4, C5, C6, C7)

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
                integers(self, "output_padding"),
            )
        ]


def conv_transpose(
    x: ir.Value,
    w: ir.Value,
    bias: ir.Value | None = None,
    *,
    strides: Sequence[int] | None = None,
    padding: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    groups: int = 1,
    output_padding: Sequence[int] | None = None,
) -> ir.Value:
    """Build a transposed convolution; strides and dilations are 1, paddings 0 when not given."""
    shape = shape_of(x)
    spatial = shape.rank - 2
    strides = given_or(strides, 1, spatial)
    padding = given_or(padding, 0, 2 * spatial)
    dilations = given_or(dilations, 1, spatial)
    extra = given_or(output_padding, 0, spatial)
    b = None if bias is None else shape_of(bias)
    return build(
        ConvTransposeOp,
        [x, w] if bias is None else [x, w, bias],
        [infer(shape, shape_of(w), b, strides, padding, dilations, groups, extra)],
        strides=strides,
        padding=padding,
        dilations=dilations,
        groups=groups,
        output_padding=extra,
    )

"""`metadef.resample`: up- and downsampling of the spatial dims."""

from collections.abc import Sequence
from typing import Any

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, choice, reals
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.symbolic import DimLike

MODES = ("nearest", "linear", "cubic")

C1 = constraint("resample-C1", "x has batch, channel and spatial dims")
C2 = constraint("resample-C2", "scales and sizes have one entry a spatial dim, scales are positive")
C3 = constraint("resample-C3", "cubic has two spatial dims")


def infer(mode: str, x: Shaped, sizes: Sequence[DimLike], scales: Sequence[float]) -> Shaped:
    """Return [N, C, sizes..]: the sizes are the caller's."""
    spatial = x.rank - 2
    C1.check(spatial >= 1, str(x))
    if len(sizes) != spatial or len(scales) != spatial or not all(s > 0 for s in scales):
        raise C2.broken(f"{len(sizes)} sizes and scales {list(scales)} for {x}")
    C3.check(mode != "cubic" or spatial == 2, str(x))
    return x.with_dims([*x.dims[:2], *sizes])


class ResampleOp(MetadefOp, name="resample", traits=[ir.ext.Pure]):
    """x [N, C, spatial..] resampled to the result's spatial dims.

    Output index o reads at source `o / scale` (nearest), `(o + 0.5) / scale - 0.5` (linear, cubic),
    or `o * (in - 1) / (out - 1)` with `align_corners`; `scales` (out / in) are as given to torch,
    which need not be the ratio of sizes. cubic: a = -0.75, as torch's.
    """

    x: Operand
    result: Result
    mode: ir.StringAttr
    align_corners: Any
    scales: Any

    constraints = (C1, C2, C3)

    def infer_results(self) -> list[Shaped]:
        boolean(self, "align_corners")
        sizes = shape_of(self.results[0]).dims[2:]
        mode = choice(self, "mode", MODES)
        return [infer(mode, shape_of(self.x), sizes, reals(self, "scales"))]


def resample(
    x: ir.Value,
    sizes: Sequence[DimLike],
    *,
    mode: str,
    scales: Sequence[float] | None = None,
    align_corners: bool = False,
) -> ir.Value:
    """Build x resampled to spatial `sizes`; `scales` is their ratio, if static, when not given."""
    shape = shape_of(x)
    if scales is None:
        result = shape.with_dims([*shape.dims[:2], *sizes])
        scales = [o.value / i.value for o, i in zip(result.dims[2:], shape.dims[2:], strict=True)]
    scales = [float(s) for s in scales]
    return build(
        ResampleOp,
        [x],
        [infer(mode, shape, sizes, scales)],
        mode=mode,
        align_corners=align_corners,
        scales=scales,
    )

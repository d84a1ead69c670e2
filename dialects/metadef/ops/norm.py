"""`metadef.norm`: layer norm and root-mean-square norm over trailing dims."""

from collections.abc import Sequence

from metadef import ir
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import choice, integer, real
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import Shaped, shape_of
from metadef.symbolic import same

KINDS = ("layer", "rms")

C1 = constraint("norm-C1", "axes is between 1 and the rank of x")
C2 = constraint("norm-C2", "scale and bias have the normalised dims and element type of x")
C3 = constraint("norm-C3", "x is of floats")
C4 = constraint("norm-C4", "params are at most scale and bias")


def infer(x: Shaped, params: Sequence[Shaped], axes: int) -> Shaped:
    """Return x's own shape."""
    C1.check(1 <= axes <= x.rank, f"axes {axes} of rank {x.rank}")
    C3.check(kind_of(x.element) == "float", str(x.element))
    C4.check(len(params) <= 2, f"{len(params)} params")
    expected = x.with_dims(x.dims[-axes:])
    for p in params:
        C2.check(
            p.element == x.element
            and p.rank == axes
            and all(same(a, b) is not False for a, b in zip(p.dims, expected.dims, strict=True)),
            f"{p} for {expected}",
        )
    return x


class NormOp(MetadefOp, name="norm", traits=[ir.ext.Pure]):
    """Normalise x over its last `axes` dims: x [.., N], scale [N], bias [N].

    layer: `(x - mean) / sqrt(var + eps) * scale + bias`, the variance is over N (biased);
    rms: `x / sqrt(mean(x * x) + eps) * scale + bias`. `params` is (), (scale,) or (scale, bias).
    """

    x: Operand
    params: Sequence[Operand]
    result: Result
    kind: ir.StringAttr
    axes: ir.IntegerAttr
    eps: ir.FloatAttr

    constraints = (C1, C2, C3, C4)
    operand_groups = 2

    @property
    def scale(self) -> ir.Value | None:
        return self.operands[1] if len(self.operands) > 1 else None

    @property
    def bias(self) -> ir.Value | None:
        return self.operands[2] if len(self.operands) > 2 else None

    def infer_results(self) -> list[Shaped]:
        choice(self, "kind", KINDS)
        real(self, "eps")
        params = [shape_of(p) for p in list(self.operands)[1:]]
        return [infer(shape_of(self.x), params, integer(self, "axes"))]


def norm(
    x: ir.Value,
    scale: ir.Value | None = None,
    bias: ir.Value | None = None,
    *,
    kind: str = "layer",
    axes: int = 1,
    eps: float = 1e-5,
) -> ir.Value:
    """Build the norm of x over its last `axes` dims; a bias needs a scale."""
    assert bias is None or scale is not None, "a bias needs a scale"
    params = [p for p in (scale, bias) if p is not None]
    result = infer(shape_of(x), [shape_of(p) for p in params], axes)
    return build(NormOp, [x, *params], [result], kind=kind, axes=axes, eps=float(eps))

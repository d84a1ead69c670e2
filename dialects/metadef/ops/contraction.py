"""`metadef.contraction`: matrix products, batched, with transposed operands as flags."""

from typing import Any

from metadef import ir
from metadef.diagnostics import ShapeInferenceError
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.shapes import Shaped, broadcast_dims, shape_of
from metadef.symbolic import same

C1 = constraint("contraction-C1", "operands have rank 2 or more")
C2 = constraint("contraction-C2", "contracted dims agree")
C3 = constraint("contraction-C3", "batch dims broadcast")
C4 = constraint(
    "contraction-C4", "operands have one element type, or lhs has f32 and rhs bf16, f16 or i8"
)

#: element types of a rhs that is widened to f32 where it is read
NARROW = ("bf16", "f16", "i8")
_MIXED = frozenset(("f32", narrow) for narrow in NARROW)


def infer(lhs: Shaped, rhs: Shaped, transpose_lhs: bool, transpose_rhs: bool) -> Shaped:
    """Return [batch.., M, N]."""
    if lhs.rank < 2 or rhs.rank < 2:
        raise C1.broken(f"{lhs} and {rhs}")
    if lhs.element != rhs.element and (str(lhs.element), str(rhs.element)) not in _MIXED:
        raise C4.broken(f"{lhs.element} and {rhs.element}")
    m, k = lhs.dims[-2:]
    k2, n = rhs.dims[-2:]
    if transpose_lhs:
        m, k = k, m
    if transpose_rhs:
        k2, n = n, k2
    if same(k, k2) is False:
        raise C2.broken(f"K={k} in {lhs} and K={k2} in {rhs}")
    try:
        batch = broadcast_dims(lhs.dims[:-2], rhs.dims[:-2])
    except ShapeInferenceError:
        raise C3.broken(f"{lhs} and {rhs}") from None
    return Shaped((*batch, m, n), lhs.element)


class ContractionOp(MetadefOp, name="contraction", traits=[ir.ext.Pure]):
    """`result[b, m, n] = sum over k of lhs[b, m, k] * rhs[b, k, n]`.

    lhs is [batch.., M, K] ([batch.., K, M] with `transpose_lhs`), rhs [batch.., K, N]
    ([batch.., N, K] with `transpose_rhs`); batch dims broadcast. A rhs of fewer bits than an lhs in
    f32 is widened as it is read: what is in memory stays narrow.
    """

    lhs: Operand
    rhs: Operand
    result: Result
    transpose_lhs: Any
    transpose_rhs: Any

    constraints = (C1, C2, C3, C4)

    def infer_results(self) -> list[Shaped]:
        flags = boolean(self, "transpose_lhs"), boolean(self, "transpose_rhs")
        return [infer(shape_of(self.lhs), shape_of(self.rhs), *flags)]


def contraction(
    lhs: ir.Value, rhs: ir.Value, transpose_lhs: bool = False, transpose_rhs: bool = False
) -> ir.Value:
    """Build the matrix product of lhs and rhs."""
    result = infer(shape_of(lhs), shape_of(rhs), transpose_lhs, transpose_rhs)
    return build(
        ContractionOp,
        [lhs, rhs],
        [result],
        transpose_lhs=transpose_lhs,
        transpose_rhs=transpose_rhs,
    )

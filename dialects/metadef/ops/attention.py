"""`metadef.attention`: scaled dot-product attention."""

from typing import Any

from metadef import ir
from metadef.diagnostics import ShapeInferenceError
from metadef.dialect import Operand, Result, constraint
from metadef.dialects.metadef.attributes import boolean, real
from metadef.dialects.metadef.op import MetadefOp, build
from metadef.dialects.metadef.pointwise_fns import kind_of
from metadef.dialects.metadef.shapes import ONE, Shaped, broadcast_dims, merge_dims, shape_of
from metadef.symbolic import same

C1 = constraint("attention-C1", "q, k and v have equal rank, 3 or more")
C2 = constraint("attention-C2", "q, k and v have one float element type")
C3 = constraint("attention-C3", "E of q and k, S of k and v, and batch dims agree")
C4 = constraint("attention-C4", "the heads of q are a multiple of those of k and v")
C5 = constraint(
    "attention-C5", "mask is i1 or of q's element type and broadcasts to [B.., H, L, S]"
)


def infer(q: Shaped, k: Shaped, v: Shaped, mask: Shaped | None) -> Shaped:
    """Return [B.., H, L, Ev], Ev the last dim of v."""
    if not q.rank == k.rank == v.rank or q.rank < 3:
        raise C1.broken(f"{q}, {k} and {v}")
    C2.check(
        q.element == k.element == v.element and kind_of(q.element) == "float",
        f"{q.element}, {k.element} and {v.element}",
    )
    pairs = [(q.dims[-1], k.dims[-1]), (k.dims[-2], v.dims[-2]), (k.dims[-3], v.dims[-3])]
    for a, b in pairs:
        if same(a, b) is False:
            raise C3.broken(f"{a} and {b} in {q}, {k} and {v}")
    heads, kv_heads = q.dims[-3], k.dims[-3]
    if heads.is_static and kv_heads.is_static:
        C4.check(
            kv_heads.value > 0 and heads.value % kv_heads.value == 0,
            f"{heads} heads of q and {kv_heads} of k",
        )
    try:
        batch = broadcast_dims(q.dims[:-3], k.dims[:-3], v.dims[:-3])
    except ShapeInferenceError as error:
        raise C3.broken(f"{error} in {q}, {k} and {v}") from None
    if mask is not None:
        scores = (*batch, heads, q.dims[-2], k.dims[-2])
        C5.check(
            kind_of(mask.element) == "bool" or mask.element == q.element,
            f"a mask of {mask.element}",
        )
        offset = len(scores) - mask.rank
        try:
            C5.check(offset >= 0, f"{mask}")
            for i, d in enumerate(mask.dims):
                if d != ONE:
                    merge_dims(scores[offset + i], d)
        except ShapeInferenceError:
            raise C5.broken(f"{mask} for {q.with_dims(scores)}") from None
    return Shaped((*batch, heads, q.dims[-2], v.dims[-1]), q.element)


class AttentionOp(MetadefOp, name="attention", traits=[ir.ext.Pure]):
    """`softmax(scale * q k^T + mask) v` over S.

    q [B.., H, L, E], k [B.., Hkv, S, E], v [B.., Hkv, S, Ev], H a multiple of Hkv: head h reads
    h // (H / Hkv). A mask of i1 keeps where true; a float one is added. `causal` keeps s <= l. A
    row with nothing kept gives 0 if `safe`, else NaN as a softmax does.
    """

    q: Operand
    k: Operand
    v: Operand
    mask: Operand | None
    result: Result
    causal: Any
    scale: ir.FloatAttr
    safe: Any

    constraints = (C1, C2, C3, C4, C5)

    def infer_results(self) -> list[Shaped]:
        boolean(self, "causal")
        real(self, "scale")
        boolean(self, "safe")
        mask = None if self.mask is None else shape_of(self.mask)
        return [infer(shape_of(self.q), shape_of(self.k), shape_of(self.v), mask)]


def attention(
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    mask: ir.Value | None = None,
    *,
    causal: bool = False,
    scale: float | None = None,
    safe: bool = True,
) -> ir.Value:
    """Build attention; `scale` is 1 / sqrt(E) when not given, which needs a static E."""
    shape = shape_of(q)
    result = infer(shape, shape_of(k), shape_of(v), None if mask is None else shape_of(mask))
    if scale is None:
        scale = float(shape.dims[-1].value) ** -0.5
    operands = [q, k, v] if mask is None else [q, k, v, mask]
    return build(AttentionOp, operands, [result], causal=causal, scale=float(scale), safe=safe)

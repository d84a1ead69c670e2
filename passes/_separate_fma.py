"""Multiply-adds on a device without an instruction for them, where LLVM would call libm's fma."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from metadef import ir
from metadef.device import attribute as device
from metadef.rewrite import Pattern


def types_without_fma(module: ir.Operation) -> frozenset[str]:
    """Return the types, of f32 and f64, that the module's device has no multiply-add for."""
    if device.ATTRIBUTE not in module.attributes:
        return frozenset()
    spec = device.of(module)
    return frozenset(e for e in ("f32", "f64") if spec.instruction("fma", e) is None)


def separate_rounding(elements: Collection[str]) -> Pattern:
    """fma(a, b, c) -> a * b + c, rounded twice: for sums of products that we fused ourselves."""

    def separate(op: Any) -> ir.Value | None:
        a, b, c = op.operands
        if _element(a.type) not in elements:
            return None
        return ir.arith.addf(ir.arith.mulf(a, b), c)

    return Pattern("separate_rounding", "math.fma", separate)


def separate_or_widen(elements: Collection[str]) -> Pattern:
    """fma(a, b, c) -> a * b + c, where it says `contract`; else, in f32, the same in f64.

    Error bounds rest on products that are exact, as those of f32 are in f64.
    """
    separate = separate_rounding(elements).rewrite

    def rewrite(op: Any) -> ir.Value | Sequence[ir.Value] | None:
        if "contract" in str(op.attributes["fastmath"]):
            return separate(op)
        type_ = op.operands[0].type
        if _element(type_) != "f32" or "f32" not in elements:
            return None
        wide = ir.F64Type.get()
        if isinstance(type_, ir.VectorType):
            wide = ir.VectorType.get(type_.shape, wide)
        a, b, c = (ir.arith.extf(wide, operand) for operand in op.operands)
        return ir.arith.truncf(type_, ir.arith.addf(ir.arith.mulf(a, b), c))

    return Pattern("separate_or_widen", "math.fma", rewrite)


def _element(type_: ir.Type) -> str:
    return str(type_.element_type if isinstance(type_, ir.VectorType) else type_)

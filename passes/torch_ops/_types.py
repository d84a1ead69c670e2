"""Read the types that the front end gave torch values: dtype, dims and symbols."""

from __future__ import annotations

from typing import Any

from metadef import ir
from metadef.symbolic import Dim

from .call import TensorType, parse_vtensor


def dims_from_attribute(attribute: ir.Attribute) -> tuple[Dim, ...]:
    """Return the dims in `["B", 768]`, an entry of `metadef.dims`."""
    return tuple(Dim.of(a.value) for a in ir.ArrayAttr(attribute))


def result_types(op: ir.Operation, bound: dict[ir.Value, tuple[Dim, ...]]) -> Any:
    """Return the TensorType of each result, None for one that is not a tensor.

    Dims come from the op's `metadef.dims`, from a `torch.bind_symbolic_shape` (`bound`), or from
    a static type.
    """
    declared = None
    if "metadef.dims" in op.attributes:
        declared = ir.ArrayAttr(op.attributes["metadef.dims"])
    return tuple(
        tensor_type_of(
            r.type,
            dims_from_attribute(declared[i]) if declared is not None else bound.get(r),
        )
        for i, r in enumerate(op.results)
    )


def tensor_type_of(torch_type: ir.Type, declared: tuple[Dim, ...] | None) -> TensorType | None:
    """Return the type of a `!torch.vtensor`; `declared` dims serve where it is dynamic."""
    parsed = parse_vtensor(str(torch_type))
    if parsed is None:
        return None
    element, sizes = parsed
    known = [s for s in sizes if s is not None]
    if len(known) == len(sizes):
        return TensorType(element, tuple(Dim.of(s) for s in known), len(sizes))
    if declared is not None and len(declared) == len(sizes):
        return TensorType(element, declared, len(sizes))
    return TensorType(element, None, len(sizes))


def dim_from_affine(expr: ir.AffineExpr, symbols: list[Dim]) -> Dim:
    """Return the dim that an affine expression over `symbols` says."""
    if isinstance(expr, ir.AffineConstantExpr):
        return Dim.of(expr.value)
    if isinstance(expr, ir.AffineSymbolExpr):
        return symbols[expr.position]
    lhs, rhs = (dim_from_affine(_exact(e), symbols) for e in (expr.lhs, expr.rhs))
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return lhs * rhs
    if isinstance(expr, ir.AffineModExpr):
        return lhs % rhs
    if isinstance(expr, ir.AffineFloorDivExpr):
        return lhs // rhs
    assert isinstance(expr, ir.AffineCeilDivExpr), f"affine expression {expr}"
    return (lhs + rhs - 1) // rhs


def _exact(expr: ir.AffineExpr) -> ir.AffineExpr:
    """Return the expression as an instance of its own class."""
    for kind in (
        ir.AffineConstantExpr,
        ir.AffineSymbolExpr,
        ir.AffineAddExpr,
        ir.AffineMulExpr,
        ir.AffineModExpr,
        ir.AffineFloorDivExpr,
        ir.AffineCeilDivExpr,
    ):
        if kind.isinstance(expr):
            return kind(expr)
    return expr

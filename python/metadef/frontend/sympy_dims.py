"""From torch's sympy expressions of sizes to `Dim`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sympy
from torch.utils._sympy import functions as torch_sympy

from metadef.symbolic import Dim, product

from .symbols import UnsupportedExpressionError


def dim_of(expr: sympy.Basic, names: Mapping[str, str]) -> Dim:
    if isinstance(expr, sympy.Symbol):
        return Dim.of(names.get(str(expr), str(expr)))
    if isinstance(expr, sympy.Integer):
        return Dim.of(int(expr))
    args = expr.args
    if isinstance(expr, sympy.Add):
        return sum((dim_of(a, names) for a in args), Dim.of(0))
    if isinstance(expr, sympy.Mul):
        return product([dim_of(a, names) for a in args])
    is_power = isinstance(expr, sympy.Pow | torch_sympy.PowByNatural)
    if is_power and isinstance(args[1], sympy.Integer) and int(args[1]) >= 0:
        return product([dim_of(args[0], names)] * int(args[1]))
    call = _call_of(expr)
    if call is not None:
        return _fold(call, [dim_of(a, names) for a in args])
    if isinstance(expr, torch_sympy.CeilDiv):
        numerator, denominator = (dim_of(a, names) for a in args)
        return Dim.call("floordiv", numerator + denominator - 1, denominator)
    raise UnsupportedExpressionError(f"size '{expr}' is not a dim expression")


def _call_of(expr: sympy.Basic) -> str | None:
    if isinstance(expr, torch_sympy.FloorDiv):
        return "floordiv"
    if isinstance(expr, (torch_sympy.Mod, torch_sympy.PythonMod)):
        return "mod"
    if isinstance(expr, (sympy.Max, torch_sympy.Max)):
        return "max"
    if isinstance(expr, (sympy.Min, torch_sympy.Min)):
        return "min"
    return None


def _fold(call: str, args: Iterable[Dim]) -> Dim:
    first, *rest = args
    for arg in rest:
        first = Dim.call(call, first, arg)
    return first

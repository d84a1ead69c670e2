"""Replace elementary functions by polynomials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from metadef import ir
from metadef.forms import LOOPS
from metadef.passes._separate_fma import separate_or_widen, separate_rounding, types_without_fma
from metadef.passes.vector_math.error_function import erf, erfc
from metadef.passes.vector_math.exponential import exp, exp2, expm1
from metadef.passes.vector_math.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from metadef.passes.vector_math.inverse_trigonometric import acos, asin, atan, atan2
from metadef.passes.vector_math.lanes import Elementwise
from metadef.passes.vector_math.logarithm import log, log1p, log2, log10
from metadef.passes.vector_math.power import cbrt, fpowi, ipowi, powf, rsqrt
from metadef.passes.vector_math.trigonometric import cos, sin, tan
from metadef.pipeline import Pass
from metadef.rewrite import Pattern, apply_patterns

FUNCTIONS = (
    (acos, acosh, asin, asinh, atan, atan2, atanh, cbrt, cos, cosh, erf, erfc, exp, exp2, expm1)
    + (fpowi, ipowi, log, log10, log1p, log2, powf, rsqrt, sin, sinh, tan, tanh)
)  # fmt: skip


def expansion(function: Elementwise) -> Pattern:
    """Return the pattern that replaces `math.<name>` by what `function` builds."""
    name = function.__name__
    return Pattern(f"expand_{name}", f"math.{name}", lambda op: function(*op.operands))


def expand_clampf(op: ir.OpView) -> ir.Value:
    """clampf x to [lo, hi] -> minimumf(maximumf(x, lo), hi), which keeps NaN."""
    x, low, high = op.operands
    return ir.arith.minimumf(ir.arith.maximumf(x, low), high)


def expand_sincos(op: ir.OpView) -> list[ir.Value]:
    """sincos x -> sin x, cos x."""
    return [sin(op.operands[0]), cos(op.operands[0])]


PATTERNS = (
    *map(expansion, FUNCTIONS),
    Pattern("expand_clampf", "math.clampf", expand_clampf),
    Pattern("expand_sincos", "math.sincos", expand_sincos),
)


@dataclass(frozen=True)
class ExpandMath(Pass):
    """Replace `math` functions of floats, scalar or vector, by arithmetic without calls.

    What LLVM has an instruction for (sqrt, fma, floor, ceil, round, roundeven, trunc, absf,
    copysign, bit counts) stays. Error bounds are in the docstrings of `vector_math/`. They rest on
    fused multiply-add. On a device without it, sums of products are rounded twice, and what the
    bounds rest on goes through f64; in f64 LLVM calls libm's fma, exact and slow.

    Before:
        %y = math.rsqrt %x : vector<16xf32>
    After:
        %root = math.sqrt %x : vector<16xf32>
        %one = arith.constant dense<1.0> : vector<16xf32>
        %y = arith.divf %one, %root : vector<16xf32>
    """

    accepts = LOOPS
    requires: ClassVar[str] = "math ops on scalars and vectors of f16, bf16, f32, f64 or integers"
    leaves: ClassVar[str] = "arith, vector, scf, and the math ops that LLVM lowers to instructions"

    def run(self, module: ir.Operation) -> None:
        lacking = types_without_fma(module)
        if lacking:
            apply_patterns(module, [separate_rounding(lacking)])
        apply_patterns(module, PATTERNS)
        if lacking:
            apply_patterns(module, [separate_or_widen(lacking)])

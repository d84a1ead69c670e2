"""An example of a user's file: a dialect, an op with a verifier, a pattern and a pass.

metadef-opt --load signal.py model.mlir --fold-gain-of-gain --lower-gain=max-decibels=60
"""

from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.diagnostics import MetadefError, location_text
from metadef.dialect import Operand, Result
from metadef.pipeline import Pass
from metadef.rewrite import apply_patterns, pattern


class SignalDialect(ir.ext.Dialect, name="signal"):
    """Operators on sampled signals."""


class GainOp(SignalDialect.Operation, name="gain", traits=[ir.ext.Pure]):
    """`x * 10^(decibels / 20)`."""

    x: Operand
    result: Result
    decibels: ir.FloatAttr

    def verify_invariants(self) -> bool:
        x, result = self.operation.operands[0].type, self.operation.results[0].type
        if x == result:
            return True
        self.location.emit_error(f"'signal.gain' op: gain-C1: the result is like x, got {result}")
        return False


@pattern("signal.gain")
def fold_gain_of_gain(op: Any) -> ir.Value | None:
    """`gain(gain(x, a), b)` -> `gain(x, a + b)`: decibels add up."""
    inner = op.operation.operands[0].owner
    if isinstance(inner, ir.Block) or inner.operation.name != "signal.gain":
        return None
    decibels = _decibels(inner.operation) + _decibels(op.operation)
    return _gain(inner.operation.operands[0], decibels)


@dataclass(frozen=True)
class LowerGain(Pass):
    """Replace gains by a product with a constant.

    Before:

        %0 = "signal.gain"(%x) {decibels = 20.0 : f64} : (f32) -> f32

    After:

        %c = arith.constant 10.0 : f32
        %0 = arith.mulf %x, %c : f32
    """

    max_decibels: float = 120.0

    requires = "any module"
    leaves = "no signal.gain"

    def run(self, module: ir.Operation) -> None:
        @pattern("signal.gain")
        def lower_gain(op: Any) -> ir.Value:
            decibels = _decibels(op.operation)
            if abs(decibels) > self.max_decibels:
                raise MetadefError(
                    f"'signal.gain' op: expected at most {self.max_decibels} dB, got {decibels}; "
                    f"from {location_text(op.location)}"
                )
            type_ = op.operation.results[0].type
            factor = ir.arith.constant(type_, 10.0 ** (decibels / 20.0))
            return ir.arith.mulf(op.operation.operands[0], factor)

        apply_patterns(module, [lower_gain])


def _decibels(op: ir.Operation) -> float:
    return float(ir.FloatAttr(op.attributes["decibels"]).value)


def _gain(x: ir.Value, decibels: float) -> ir.Value:
    return ir.Operation.create(
        "signal.gain",
        results=[x.type],
        operands=[x],
        attributes={"decibels": ir.FloatAttr.get_f64(decibels)},
    ).results[0]

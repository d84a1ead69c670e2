"""Run convolutions channels last, and let the transposes that this needs meet and cancel."""

from __future__ import annotations

from dataclasses import dataclass

from metadef import ir
from metadef.forms import FRONT
from metadef.pipeline import Pass

from ._buffers import has_uses
from ._layout import Sweep
from ._layout_choice import Layouts
from ._layout_ops import RULES

_WINDOWED = frozenset({"metadef.conv", "metadef.conv_transpose", "metadef.pool"})
_VIEW_OPS = frozenset({"metadef.transpose", "metadef.reshape"})


@dataclass(frozen=True)
class PropagateLayout(Pass):
    """Turn nchw convolutions and pools into nhwc ones, and sink the transposes below other ops.

    Before:
        %0 = "metadef.conv"(%x, %w) <{layout = "nchw", ..}> : [N, C, H, W]
        %1 = "metadef.pointwise"(%0) <{fn = "relu"}>
        %2 = "metadef.conv"(%1, %v) <{layout = "nchw", ..}>
    After:
        %0 = "metadef.transpose"(%x) <{perm = array<i64: 0, 2, 3, 1>}>
        %1 = "metadef.conv"(%0, %w') <{layout = "nhwc", ..}>
        %2 = "metadef.pointwise"(%1) <{fn = "relu"}>
        %3 = "metadef.conv"(%2, %v') <{layout = "nhwc", ..}>
        %4 = "metadef.transpose"(%3) <{perm = array<i64: 0, 3, 1, 2>}>

    One sweep in program order: each op whose operand is such a transpose reads the transpose's
    source instead and is followed by the transpose, unless the transposes which its other operands
    then need move more bytes than the ones that go. So each transpose only ever moves down, and
    ends where it meets its inverse, an op that cannot take it, or the end.
    Which ops over windows go to nhwc is a decision: `cost/layout.py` prices both layouts by the
    module's `device.spec`, with the images that have to be moved and with spectra where those are
    to be had (`choose-convolutions`), and the module's `metadef.plan` says otherwise (see
    `_planned.py`). So a depthwise convolution of what nobody has channels last stays as it is where
    vectors along its rows are full, and a 1x1 one becomes a contraction. A transposed convolution
    whose windows do not overlap becomes a contraction.
    """

    accepts = FRONT
    requires = "metadef ops on tensors"
    leaves = "windowed ops in nhwc where that pays; transposes only where layouts meet"

    def run(self, module: ir.Operation) -> None:
        layouts = Layouts(module)
        for op in ir.entry_block(module):
            if op.operation.name == "func.func" and not op.is_external:
                block = ir.entry_block(op)
                if any(o.operation.name in _WINDOWED for o in block.operations):
                    _sweep(Sweep(block, layouts.layout_of))


def _sweep(sweep: Sweep) -> None:
    block = sweep.block
    for op in list(block.operations):
        rule = RULES.get(op.operation.name)
        with ir.InsertionPoint(op), op.location:
            new = None if rule is None else rule(sweep, op)
        if new is None:
            sweep.note_once(list(op.operation.operands), list(op.operation.results))
            continue
        sweep.note_once(list(op.operation.operands), [new])
        op.operation.results[0].replace_all_uses_with(new)
        op.operation.erase()
    for op in reversed(list(block.operations)):
        if op.operation.name in _VIEW_OPS and not has_uses(op.operation):
            op.operation.erase()

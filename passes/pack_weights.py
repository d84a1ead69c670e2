"""Store the weights of contractions and convolutions in panels as wide as a register block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, choice
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.ops.unpack import unpack
from metadef.dialects.metadef.shapes import shape_of
from metadef.dialects.metadef.windows import LAYOUTS
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.symbolic import Dim

from ._buffers import element_bytes, owner_of
from .vectorize import target_of


@dataclass(frozen=True)
class PackWeights(Pass):
    """Rewrite weight operands as `unpack` of their panels; making the panels runs once, in @init.

    Before:
        %y = "metadef.contraction"(%x, %w) <{transpose_rhs = true, ..}> : [M, K] x [N, K]
    After:
        %0 = "metadef.transpose"("metadef.reshape"(%w)) : [N, K] -> [N/32, 32, K] -> [N/32, K, 32]
        %1 = "metadef.unpack"(%0) <{at = 0, dim = 0, size = N}> : [N/32, K, 32] -> [N, K]
        %y = "metadef.contraction"(%x, %1) <{transpose_rhs = true, ..}> : [M, K] x [N, K]

    A register block then reads one panel from start to end, whatever the weight's own layout.
    A panel is `panel-vectors` vectors of the device wide; a dim shorter than a vector stays.
    """

    panel_vectors: int = 2

    accepts = FRONT
    requires: ClassVar[str] = "metadef ops on tensors, convolutions in nhwc"
    leaves: ClassVar[str] = "weights of contractions and convolutions read through metadef.unpack"

    def run(self, module: ir.Operation) -> None:
        bits = target_of(module).vector_bits
        for function in ir.entry_block(module).operations:
            if function.operation.name == "func.func":
                _pack(ir.entry_block(function), self.panel_vectors * bits // 8)


def _pack(block: ir.Block, panel_bytes: int) -> None:
    once: set[ir.Operation] = set()
    packed: dict[tuple[ir.Value, int, int], ir.Value] = {}
    for view in list(block.operations):
        op = view.operation
        if all(owner_of(v) in once for v in op.operands):
            once.add(op)
            continue
        place = _packed_dim(view)
        if place is None or owner_of(op.operands[1]) not in once:
            continue
        weight = op.operands[1]
        shape = shape_of(weight)
        if not all(d.is_static for d in shape.dims):
            continue
        width = panel_bytes // element_bytes(shape.element)
        extent = shape.dims[place[0]].value
        if extent < width // 2:
            continue
        key = (weight, *place)
        with ir.InsertionPoint(op), op.location:
            if key not in packed:
                packed[key] = _panels(weight, *place, width)
            op.operands[1] = unpack(packed[key], *place, extent)


def _packed_dim(op: Any) -> tuple[int, int] | None:
    """Return (dim of the weight that runs along the lanes, axis for its panels), or None."""
    name = op.operation.name
    if name == "metadef.contraction":
        rank = shape_of(op.operation.operands[1]).rank
        return (rank - 2 if boolean(op, "transpose_rhs") else rank - 1), rank - 2
    if name == "metadef.conv" and choice(op, "layout", LAYOUTS) == "nhwc":
        dims = shape_of(op.operation.operands[1]).dims
        # Depthwise: one output channel a group, and the groups run along the lanes.
        return (0, 0) if dims[-1] == Dim.of(1) and dims[-2] == Dim.of(1) else (len(dims) - 1, 1)
    return None


def _panels(weight: ir.Value, dim: int, at: int, width: int) -> ir.Value:
    """Build the panels of dim `dim`: their number as axis `at`, their width as the last axis."""
    dims = shape_of(weight).dims
    extent = dims[dim].value
    count = -(-extent // width)
    if count * width != extent:
        high = [count * width - extent if d == dim else 0 for d in range(len(dims))]
        weight = pad(weight, [0] * len(dims), high)
    split = reshape(weight, [*dims[:dim], count, width, *dims[dim + 1 :]])
    order = [d if d < dim else d + 1 for d in range(len(dims)) if d != dim]
    return transpose(split, [*order[:at], dim, *order[at:], dim + 1])

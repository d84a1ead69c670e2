"""Store the weights of contractions and convolutions in panels as wide as a register block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, choice, integers
from metadef.dialects.metadef.ops.pad import pad
from metadef.dialects.metadef.ops.reshape import reshape
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.ops.unpack import unpack
from metadef.dialects.metadef.shapes import shape_of
from metadef.dialects.metadef.windows import LAYOUTS
from metadef.forms import FRONT
from metadef.pipeline import Pass
from metadef.symbolic import Dim

from ._buffers import RESHAPE, element_bytes, has_uses, owner_of
from .vectorize import target_of

TRANSPOSE = "metadef.transpose"


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
        # A narrow weight is widened in registers: its panel has the lanes of what is computed.
        width = panel_bytes // element_bytes(shape_of(op.operands[0]).element)
        extent = shape.dims[place[0]].value
        if extent < width // 2:
            continue
        key = (weight, *place)
        with ir.InsertionPoint(op), op.location:
            if key not in packed:
                packed[key] = _panels(weight, *place, width)
            op.operands[1] = unpack(packed[key], *place, extent)
    for view in reversed(list(block.operations)):
        if view.operation.name in (TRANSPOSE, RESHAPE) and not has_uses(view.operation):
            view.operation.erase()  # what the panels were not made of after all


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
    dims = [d.value for d in shape_of(weight).dims]
    source, axes = _turned_from(weight)
    from_dims = [d.value for d in shape_of(source).dims]
    cut = axes[dim]
    count = -(-dims[dim] // width)
    if count * width != dims[dim]:
        high = [count * width - n if axis == cut else 0 for axis, n in enumerate(from_dims)]
        source = pad(source, [0] * len(high), high)
    split: list[int] = []
    place = {}
    for axis, size in enumerate(from_dims):
        place[axis] = len(split)
        split += [count, width] if axis == cut else [size] * (size != 1)
    others = [d for d in range(len(dims)) if d != dim]
    order = [d for d in (*others[:at], dim, *others[at:]) if d == dim or dims[d] != 1]
    turned = transpose(reshape(source, split), [*(place[axes[d]] for d in order), place[cut] + 1])
    shape = [dims[d] for d in others]
    shape = [*shape[:at], count, *shape[at:], width]
    return turned if len(shape) == len(order) + 1 else reshape(turned, shape)


def _turned_from(weight: ir.Value) -> tuple[ir.Value, dict[int, int]]:
    """Return what `weight` is a transposition of, and where its dims are there, but for those of 1.

    One transposition into panels then does for both.
    """
    axes = {d: d for d, size in enumerate(shape_of(weight).dims) if size != Dim.of(1)}
    while (owner := owner_of(weight)) is not None and owner.name in (TRANSPOSE, RESHAPE):
        source = owner.operands[0]
        if owner.name == TRANSPOSE:
            to = dict(enumerate(integers(owner, "perm")))
        else:
            wide, from_wide = _wide(weight), _wide(source)
            if list(wide.values()) != list(from_wide.values()):
                break
            to = dict(zip(wide, from_wide, strict=True))
        axes = {d: to[axis] for d, axis in axes.items()}
        weight = source
    return weight, axes


def _wide(value: ir.Value) -> dict[int, Dim]:
    return {axis: d for axis, d in enumerate(shape_of(value).dims) if d != Dim.of(1)}

"""A structured op on memrefs as a loop nest: dims, operand accesses and a scalar body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from metadef import ir

from .access import Access, FlatBuffer, access, dims_in
from .index_math import Index, add, mul

Operand: TypeAlias = Access | ir.Value
"""An operand is read through an access, or is a scalar that no loop moves."""


@dataclass(frozen=True)
class Inside:
    """Where a window falls inside an input: 0 <= output * stride + tap * dilation + start < extent.

    `output` is a parallel dim and `tap` a reduction dim. Beside the input nothing is to be read.
    """

    output: int
    tap: int
    stride: int
    dilation: int
    start: int
    extent: int


@dataclass(eq=False)
class Stage:
    """One `linalg.generic`; after grouping perhaps with its fill and its epilogue merged in.

    `extents[d]` and `reduction[d]` describe loop dim d. `init[k]` is the scalar that output k's
    accumulator starts from (None: the output's own contents).
    """

    op: ir.Operation
    extents: tuple[Index, ...]
    reduction: tuple[bool, ...]
    inputs: list[Operand]
    outputs: list[Access]
    reads: list[ir.Value]
    writes: list[ir.Value]
    init: list[ir.Value | None] = field(default_factory=list)
    epilogue: Stage | None = None
    #: index of the epilogue's input that is this stage's first output, held in registers
    epilogue_input: int = 0
    #: dim -> (dim of this stage, divisor, modulus or None) of the op's original `linalg.index` dims
    index_dims: dict[int, int] = field(default_factory=dict)
    #: the windows of which not all is there
    inside: tuple[Inside, ...] = ()

    @property
    def sums_products(self) -> bool:
        """Tell whether several inputs move along the dims that are reduced."""
        moving = [
            x
            for x in self.inputs
            if isinstance(x, Access) and any(x.moves(d) for d in self.reduction_dims)
        ]
        return len(moving) > 1

    @property
    def body(self) -> ir.Block:
        return self.op.regions[0].blocks[0]

    @property
    def parallel_dims(self) -> list[int]:
        return [d for d, r in enumerate(self.reduction) if not r]

    @property
    def reduction_dims(self) -> list[int]:
        return [d for d, r in enumerate(self.reduction) if r]

    def accesses(self) -> list[Access]:
        """Return the accesses of inputs, outputs and epilogue."""
        found = [x for x in self.inputs if isinstance(x, Access)]
        if self.epilogue is None:
            return found + self.outputs
        kept = [
            x
            for k, x in enumerate(self.epilogue.inputs)
            if isinstance(x, Access) and k != self.epilogue_input
        ]
        return found + kept + self.epilogue.outputs

    def accumulates(self, output: int) -> bool:
        """Tell whether output `output` is reduced over the reduction dims (not stored inside)."""
        return not any(self.outputs[output].moves(d) for d in self.reduction_dims)

    def uses_index(self) -> bool:
        """Tell whether a body reads a loop index."""
        ops = [self.op] + ([self.epilogue.op] if self.epilogue else [])
        return any(o.operation.name == "linalg.index" for op in ops for o in ir.operations(op))


def parse_stage(op: ir.OpView, flat: Callable[[ir.Value], FlatBuffer]) -> Stage:
    """Read a `linalg.generic` on memrefs; `flat` gives (and caches) the flat view of a buffer."""
    maps = [ir.AffineMapAttr(m).value for m in ir.ArrayAttr(op.attributes["indexing_maps"])]
    kinds = [str(k) for k in ir.ArrayAttr(op.attributes["iterator_types"])]
    n_inputs = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
    n_dims = len(kinds)
    extents: list[Index | None] = [None] * n_dims
    operands: list[Operand] = []
    for operand, map_ in zip(op.operands, maps, strict=True):
        if not isinstance(operand.type, ir.MemRefType):
            operands.append(operand)
            continue
        buffer = flat(operand)
        element = ir.MemRefType(operand.type).element_type
        operands.append(access(buffer, element, map_))
        for expr, size in zip(map_.results, buffer.sizes, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                d = expr.position
                if extents[d] is None or isinstance(size, int):
                    extents[d] = size
    assert all(e is not None for e in extents), f"a loop dim of {op} has no extent"
    outputs = [o for o in operands[n_inputs:] if isinstance(o, Access)]
    return Stage(
        op=op.operation,
        extents=tuple(e for e in extents if e is not None),
        reduction=tuple("reduction" in k for k in kinds),
        inputs=operands[:n_inputs],
        outputs=outputs,
        reads=[v for v in list(op.operands)[:n_inputs] if isinstance(v.type, ir.MemRefType)],
        writes=list(op.operands)[n_inputs:],
        init=[None] * len(outputs),
        index_dims={d: d for d in range(n_dims)},
    )


def remap(stage: Stage, to: dict[int, int], extents: tuple[Index, ...], n_dims: int) -> Stage:
    """Return `stage` with its dim d renamed to `to[d]` in a space of `n_dims` dims."""
    reduction = [False] * n_dims
    for d, r in enumerate(stage.reduction):
        reduction[to[d]] = r
    return replace(
        stage,
        extents=extents,
        reduction=tuple(reduction),
        inputs=[remap_access(x, to, n_dims) if isinstance(x, Access) else x for x in stage.inputs],
        outputs=[remap_access(x, to, n_dims) for x in stage.outputs],
        index_dims={original: to[d] for original, d in stage.index_dims.items()},
    )


def remap_access(x: Access, to: dict[int, int], n_dims: int) -> Access:
    """Return the access with loop dim d renamed to `to[d]`."""
    strides: list[Index] = [0] * n_dims
    for d, stride in enumerate(x.strides):
        if d in to:
            strides[to[d]] = stride
    if not x.nonlinear:
        return replace(x, strides=tuple(strides))
    renaming = ir.AffineMap.get(
        n_dims, 0, [ir.AffineDimExpr.get(to.get(d, 0)) for d in range(len(x.strides))]
    )
    nonlinear = tuple((e.compose(renaming).maybe_downcast(), s) for e, s in x.nonlinear)
    return replace(x, strides=tuple(strides), nonlinear=nonlinear)


def collapse(stage: Stage) -> Stage:
    """Merge adjacent dims that every access walks as one: `for i, for j` over a dense [I, J]."""
    if stage.uses_index() or not stage.extents:
        return stage
    d = 0
    bounded = {d for w in stage.inside for d in (w.output, w.tap)}
    while d + 1 < len(stage.extents):
        if not bounded & {d, d + 1} and mergeable(stage, d, d + 1):
            stage = _merge(stage, d)
            bounded = {d for w in stage.inside for d in (w.output, w.tap)}
        else:
            d += 1
    return stage


def mergeable(stage: Stage, a: int, b: int) -> bool:
    """Tell whether every access walks dims `a` and `b`, the inner one, as one."""
    if stage.reduction[a] != stage.reduction[b]:
        return False
    extent = stage.extents[b]
    for x in _all_accesses(stage):
        if x.is_nonlinear(a) or x.is_nonlinear(b):
            return False
        outer, inner = x.strides[a], x.strides[b]
        if isinstance(inner, int) and inner == 0:
            if not (isinstance(outer, int) and outer == 0):
                return False
        elif not (
            isinstance(outer, int)
            and isinstance(inner, int)
            and isinstance(extent, int)
            and outer == inner * extent
        ):
            return False
    return True


def _all_accesses(stage: Stage) -> list[Access]:
    found = [x for x in stage.inputs if isinstance(x, Access)] + stage.outputs
    return found + (_all_accesses(stage.epilogue) if stage.epilogue else [])


def _merge(stage: Stage, a: int) -> Stage:
    def drop(x: Access) -> Access:
        renaming = {d: d if d <= a else d - 1 for d in range(len(x.strides))}
        moved = remap_access(
            replace(x, strides=x.strides[:a] + (0,) + x.strides[a + 1 :]), renaming, n - 1
        )
        strides = list(moved.strides)
        strides[a] = x.strides[a + 1]
        return replace(moved, strides=tuple(strides))

    n = len(stage.extents)
    extents = (
        stage.extents[:a] + (mul(stage.extents[a], stage.extents[a + 1]),) + stage.extents[a + 2 :]
    )
    return replace(
        stage,
        extents=extents,
        reduction=stage.reduction[:a] + stage.reduction[a + 1 :],
        inputs=[drop(x) if isinstance(x, Access) else x for x in stage.inputs],
        outputs=[drop(x) for x in stage.outputs],
        inside=tuple(
            replace(w, output=w.output - (w.output > a), tap=w.tap - (w.tap > a))
            for w in stage.inside
        ),
        epilogue=_merge(stage.epilogue, a) if stage.epilogue else None,
    )


def point_add(point: tuple[Index, ...], dim: int, delta: Index) -> tuple[Index, ...]:
    """Return `point` moved by `delta` along `dim`."""
    return point[:dim] + (add(point[dim], delta),) + point[dim + 1 :]


def nonlinear_dims(stage: Stage) -> set[int]:
    """Return the dims that some access reads through floordiv or mod."""
    return {d for x in stage.accesses() for e, _ in x.nonlinear for d in dims_in(e)}

"""What a kernel is, for who compares kernels: its kind, layout, precision, family and sizes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.dialects.metadef.attributes import boolean, integer, integers, text
from metadef.dialects.metadef.shapes import shape_of
from metadef.symbolic import Dim

#: ops that give a kernel its kind, what matters most first
_MAIN = (
    *("contraction", "conv", "conv_transpose", "attention", "winograd_input", "winograd_output"),
    *("fourier_input", "fourier_output"),
    *("norm", "softmax", "sort", "scan", "resample", "pool", "reduce", "scatter", "index_put"),
    *("gather", "take", "pointwise", "transpose"),
)
_KINDS = {
    **{name: name for name in ("attention", "norm", "softmax", "pool", "reduce", "pointwise")},
    **{"transpose": "transpose", "gather": "gather", "take": "gather"},
    **{"winograd_input": "winograd", "winograd_output": "winograd"},
}
#: ops that no time is spent on beside others
_FREE = frozenset("unpack reshape broadcast constant fill iota dim slice yield".split())
#: dims that are windows, or that loops vanish with: another one is another kernel
_STRUCTURAL = frozenset("1 3 5 7".split())
_DIMS = re.compile(r", #metadef\.dims<\[[^\]]*\]>")
_EXTENT = re.compile(r"(?<=[<x])\d+(?=x)")
_SIZE = re.compile(r"\bsize = \d+")
_DIGITS = 32


@dataclass(frozen=True)
class KernelTraits:
    """What a kernel is; `family` is the same for kernels that differ in their sizes alone.

    `sizes` are the dims of its arguments and results, `symbols` the names in them.
    """

    kind: str
    layout: str
    precision: str
    fused: bool
    family: str
    sizes: tuple[Dim, ...]

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(sorted({name for dim in self.sizes for name in dim.symbols}))

    def extents(self, symbols: Mapping[str, int]) -> tuple[int, ...]:
        """Return the sizes under values for the symbols."""
        return tuple(dim.evaluate(symbols) for dim in self.sizes)


def kernel_traits(function: ir.OpView) -> KernelTraits:
    """Return what a kernel is: a function of metadef ops on tensors, before any lowering."""
    ops = [op for op in ir.operations(function) if op.operation.name.startswith("metadef.")]
    named = [(op.operation.name.removeprefix("metadef."), op) for op in ops]
    main = min(
        (pair for pair in named if pair[0] in _MAIN),
        key=lambda pair: _MAIN.index(pair[0]),
        default=("", None),
    )
    block = ir.entry_block(function)
    results = block.operations[len(block.operations) - 1].operation.operands
    values = [*block.arguments, *results]
    return KernelTraits(
        kind=_kind(*main),
        layout=_layout(*main),
        precision=_precision([str(shape_of(v).element) for v in values]),
        fused=sum(name not in _FREE for name, _ in named) > 1,
        family=_family(function),
        sizes=tuple(dim for v in values for dim in shape_of(v).dims),
    )


def _kind(name: str, op: Any) -> str:
    if name == "contraction":
        dims = shape_of(op.operation.results[0]).dims
        return "matrix_vector" if Dim.of(1) in dims[-2:] else "contraction"
    if name == "conv":
        return _kind_of_convolution(op)
    return _KINDS.get(name, "other")


def _kind_of_convolution(op: Any) -> str:
    nchw = text(op, "layout") == "nchw"
    w = shape_of(op.operation.operands[1]).dims
    window = {str(dim) for dim in (w[2:] if nchw else w[1:-2])}
    if (w[1] if nchw else w[-2]) == Dim.of(1) and integer(op, "groups") > 1:
        return "depthwise"
    if max(integers(op, "strides")) > 1:
        return "strided"
    return {"1": "convolution_1x1", "3": "convolution_3x3"}.get("".join(window), "convolution")


def _layout(name: str, op: Any) -> str:
    if name in ("conv", "pool"):
        return text(op, "layout")
    if name == "contraction":
        if _made_by(op.operation.operands[1]) == "metadef.unpack":
            return "packed"
        return "".join("nt"[boolean(op, f"transpose_{side}")] for side in ("lhs", "rhs"))
    if name in ("reduce", "softmax", "scan"):
        rank = shape_of(op.operation.operands[0]).rank
        dims = integers(op, "dims") if name == "reduce" else [integer(op, "dim")]
        return "last" if rank - 1 in dims else "first"
    if name == "transpose":
        return "last" if integers(op, "perm")[-1] != len(integers(op, "perm")) - 1 else "rows"
    return "plain"


def _made_by(value: ir.Value) -> str:
    owner = value.owner
    return "" if isinstance(owner, ir.Block) else owner.name


def _precision(elements: list[str]) -> str:
    """Return the float types of arguments and results, or the other types where there are none."""
    floats = sorted({e for e in elements if e in ("f16", "bf16", "f32", "f64")})
    return "+".join(floats or sorted(set(elements)))


def _family(function: ir.OpView) -> str:
    asm = str(
        function.operation.get_asm(
            print_generic_op_form=True, use_local_scope=True, assume_verified=True
        )
    )
    asm = asm[: asm.rindex("})")]  # what is said of the function as such
    asm = _SIZE.sub("size", _DIMS.sub("", re.sub(r'sym_name = "[^"]*"', "", asm)))
    asm = _EXTENT.sub(lambda m: m[0] if m[0] in _STRUCTURAL else "?", asm)
    return hashlib.sha256(asm.encode()).hexdigest()[:_DIGITS]

"""`bufferize`: tensors become memrefs, results become writes to the output arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from metadef import ir
from metadef.forms import TENSORS
from metadef.pipeline import Pass
from metadef.upstream import run_upstream

from ._destination_slices import write_slices_to_memory

_BUFFERIZE = (
    "one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion="
    "identity-layout-map unknown-type-conversion=identity-layout-map}"
)
_CLEAN = "canonicalize,cse"


@dataclass(frozen=True)
class Bufferize(Pass):
    """Put a kernel's tensors into memory.

    Before:
        func.func @k(%x: tensor<4xf32> {bufferization.writable = false},
                     %out: tensor<4xf32> {bufferization.writable = true})
            -> tensor<4xf32> {
          %0 = linalg.generic ... ins(%x) outs(%out) -> tensor<4xf32>
          return %0 : tensor<4xf32>
        }
    After:
        func.func @k(%x: memref<4xf32>, %out: memref<4xf32> {bufferization.writable = true}) {
          linalg.generic ... ins(%x) outs(%out)
          return
        }

    Temporaries are `memref.alloc` at function level and are never freed: they become scratch
    memory. A copy is a `linalg.generic` over two memrefs.
    """

    accepts = TENSORS
    requires: ClassVar[str] = "destination-passing kernels of linalg, tensor, scf ops"
    leaves: ClassVar[str] = "the same ops on memrefs; kernels without results"

    def run(self, module: ir.Operation) -> None:
        # No clean-up yet: on tensors it drops copies into outputs, and makes two reductions share
        # the tensor that they start from.
        outputs = {name_of(kernel): _outputs(kernel) for kernel in _kernels(module)}
        write_slices_to_memory(module)
        run_upstream(module, f"{_BUFFERIZE},{_CLEAN}")
        for kernel in _kernels(module):
            _drop_results(kernel, outputs[name_of(kernel)])
        for op in list(ir.operations(module)):
            if op.operation.name == "memref.copy":
                _copy_by_generic(op)
        run_upstream(module, _CLEAN)


def name_of(function: ir.OpView) -> str:
    return ir.StringAttr(function.attributes["sym_name"]).value


def _kernels(module: ir.Operation) -> list[ir.OpView]:
    return [
        op
        for op in ir.entry_block(module).operations
        if op.operation.name == "func.func" and "metadef.kernel" in op.attributes
    ]


def _outputs(function: ir.OpView) -> list[int]:
    """Return the numbers of the arguments that are outputs (bufferization drops their mark)."""
    attributes = _argument_attributes(function)
    return [
        i
        for i, entries in enumerate(attributes)
        if _WRITABLE in entries and ir.BoolAttr(entries[_WRITABLE]).value
    ]


def _argument_attributes(function: ir.OpView) -> list[ir.DictAttr]:
    if "arg_attrs" not in function.attributes:
        return [ir.DictAttr.get({})] * len(ir.entry_block(function).arguments)
    return [ir.DictAttr(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]


def _drop_results(function: ir.OpView, outputs: list[int]) -> None:
    """Drop returned memrefs, each its output or copied there, and mark the outputs again."""
    block = ir.entry_block(function)
    terminator = list(block.operations)[-1]
    results = list(terminator.operation.operands)
    with ir.InsertionPoint(terminator), terminator.location:
        for result, output in zip(results, outputs, strict=True):
            if source_of(result) != block.arguments[output]:
                copy(result, block.arguments[output])
        ir.func.ReturnOp([])
    terminator.operation.erase()
    type_ = ir.FunctionType.get([a.type for a in block.arguments], [])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    marked = _argument_attributes(function)
    for i in outputs:
        entries = {named.name: named.attr for named in marked[i]}
        marked[i] = ir.DictAttr.get(entries | {_WRITABLE: ir.BoolAttr.get(True)})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(marked)


_WRITABLE = "bufferization.writable"
_VIEWS = frozenset(
    {"memref.cast", "memref.expand_shape", "memref.collapse_shape", "memref.reinterpret_cast"}
)


def source_of(value: ir.Value) -> ir.Value:
    """Return the memref that `value` is all of, under another shape."""
    while isinstance(value.owner, ir.Operation | ir.OpView) and value.owner.name in _VIEWS:
        value = value.owner.operands[0]
    return value


def copy(source: ir.Value, target: ir.Value) -> None:
    """Emit a generic that copies a memref; `memref.copy` would call a runtime that is not there."""
    type_ = ir.MemRefType(target.type)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(type_.rank))
    parallel = ir.Attribute.parse("#linalg.iterator_type<parallel>")
    generic = ir.Operation.create(
        "linalg.generic",
        operands=[source, target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([identity] * 2),
            "iterator_types": ir.ArrayAttr.get([parallel] * type_.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    block = generic.regions[0].blocks.append(
        *[type_.element_type] * 2, arg_locs=[generic.location] * 2
    )
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])


def _copy_by_generic(op: ir.OpView) -> None:
    with ir.InsertionPoint(op), op.location:
        copy(*op.operation.operands)
    op.operation.erase()

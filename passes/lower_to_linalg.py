"""`lower-to-linalg`: metadef kernels become linalg on tensors, in destination-passing form."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from metadef import ir
from metadef.diagnostics import UnsupportedOpError
from metadef.dialects.metadef.types import dims_of, element_of
from metadef.forms import FRONT
from metadef.passes.linalg_lowerings.demand import values_to_store
from metadef.passes.linalg_lowerings.expression import Load, Value
from metadef.passes.linalg_lowerings.kernel import Kernel, tensor_value
from metadef.passes.linalg_lowerings.tensors import storage_type
from metadef.passes.linalg_lowerings.views import reshape_tensor
from metadef.pipeline import Pass
from metadef.symbolic import Dim

Lowering = Callable[[Kernel, Any], list[Value]]

#: module of linalg_lowerings that has `lower_<op>`
FAMILIES = {
    "attention": "attention",
    "broadcast": "shape",
    "concat": "assemble",
    "constant": "pointwise",
    "contraction": "contraction",
    "conv": "conv",
    "conv_transpose": "conv",
    "dim": "pointwise",
    "fill": "pointwise",
    "fourier_input": "fourier",
    "fourier_output": "fourier",
    "gather": "indexing",
    "index_put": "scatter",
    "iota": "pointwise",
    "norm": "normalize",
    "opaque": "opaque",
    "pad": "assemble",
    "pointwise": "pointwise",
    "pool": "pool",
    "reduce": "reduce",
    "resample": "resample",
    "reshape": "shape",
    "scan": "scan",
    "scatter": "scatter",
    "slice": "shape",
    "softmax": "normalize",
    "sort": "sort",
    "take": "indexing",
    "transpose": "shape",
    "unpack": "shape",
    "winograd_input": "winograd",
    "winograd_output": "winograd",
}


@dataclass(frozen=True)
class LowerToLinalg(Pass):
    """Lower each kernel to a few `linalg.generic` ops that write its outputs.

    Before:
        func.func @k(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>)
            -> tensor<?x4xf32, #metadef.dims<["B", 4]>> attributes {metadef.kernel} {
          %0 = "metadef.pointwise"(%x) {fn = "exp"} : (...) -> tensor<?x4xf32, ...>
          return %0 : tensor<?x4xf32, #metadef.dims<["B", 4]>>
        }
    After:
        func.func @k(%x: tensor<?x4xf32> {bufferization.writable = false, metadef.dims = ["B", 4]},
                     %out: tensor<?x4xf32> {bufferization.writable = true, metadef.dims = ["B", 4]},
                     %B: index {metadef.symbol = "B"}) -> tensor<?x4xf32> {
          %0 = linalg.generic ... ins(%x) outs(%out) { math.exp } -> tensor<?x4xf32>
          return %0 : tensor<?x4xf32>
        }

    A bool is a byte in memory (0 or 1) and i1 in bodies; half floats are computed in f32.
    """

    accepts = FRONT
    requires: ClassVar[str] = "functions with `metadef.kernel` of metadef ops on ranked tensors"
    leaves: ClassVar[str] = "linalg, tensor, scf, arith and math ops; each result is an output's"

    def run(self, module: ir.Operation) -> None:
        for op in list(ir.entry_block(module).operations):
            if op.operation.name == "func.func" and "metadef.kernel" in op.attributes:
                lower_kernel(op)


def lower_kernel(old: ir.OpView) -> None:
    """Replace one kernel function by its lowered form."""
    block = ir.entry_block(old)
    ops = list(block.operations)
    results = list(ops[-1].operation.operands)
    with ir.InsertionPoint(old), old.location:
        function, arguments, outputs, symbols = _new_function(old, block, results)
        body = function.entry_block
        with ir.InsertionPoint(body):
            head = ir.arith.constant(ir.IndexType.get(), 0).owner
            kernel = Kernel(symbols, head)
            for argument, new in zip(block.arguments, arguments, strict=True):
                dims, element = dims_of(argument.type), element_of(argument.type)
                kernel.env[argument] = tensor_value(new, dims, element)
            for result, output in zip(results, outputs, strict=True):
                kernel.outputs.setdefault(result, output)
            stored = values_to_store(ops)
            for op in ops[:-1]:
                with op.location:
                    _lower_op(kernel, op, stored)
            with ops[-1].location:
                ir.func.ReturnOp(_finish(kernel, results, outputs))
    old.operation.erase()


def _new_function(
    old: ir.OpView, block: ir.Block, results: list[ir.Value]
) -> tuple[ir.func.FuncOp, list[ir.Value], list[ir.Value], dict[str, ir.Value]]:
    """Create the destination-passing function: inputs, outputs, symbols."""
    tensors = [*block.arguments, *results]
    names = sorted(symbols_of(old))
    types = [_plain_type(t.type) for t in tensors]
    outputs = types[len(block.arguments) :]
    inputs = types + [ir.IndexType.get()] * len(names)
    name = ir.StringAttr(old.attributes["sym_name"]).value
    function = ir.func.FuncOp(name, (inputs, outputs))
    for attribute in old.attributes:
        if attribute not in ("sym_name", "function_type", "arg_attrs", "res_attrs"):
            function.attributes[attribute] = old.attributes[attribute]
    attributes = [_dims_attribute(t.type) for t in tensors]
    for i, entries in enumerate(attributes):
        # Bufferization writes into whatever does not say false.
        entries["bufferization.writable"] = ir.BoolAttr.get(i >= len(block.arguments))
    attributes += [{"metadef.symbol": ir.StringAttr.get(n)} for n in names]
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(a) for a in attributes])
    values = list(function.add_entry_block().arguments)
    first, last = len(block.arguments), len(tensors)
    symbols = dict(zip(names, values[last:], strict=True))
    return function, values[:first], values[first:last], symbols


def symbols_of(function: ir.OpView) -> set[str]:
    """Return the symbols that a kernel's types and dim expressions name."""
    dims: set[Dim] = set()
    block = ir.entry_block(function)
    for argument in block.arguments:
        dims.update(dims_of(argument.type))
    for op in block.operations:
        for result in op.operation.results:
            dims.update(dims_of(result.type))
        for name in ("start", "expr"):
            if name in op.operation.attributes:
                attribute = op.operation.attributes[name]
                if isinstance(attribute, ir.StringAttr):
                    dims.add(Dim.of(attribute.value))
    return {symbol for dim in dims for symbol in dim.symbols}


def _plain_type(type_: ir.Type) -> ir.Type:
    shape = ir.RankedTensorType(type_).shape
    return ir.RankedTensorType.get(shape, storage_type(element_of(type_)))


def _dims_attribute(type_: ir.Type) -> dict[str, ir.Attribute]:
    """Return the `metadef.dims` argument attribute that a symbolic type needs."""
    dims = dims_of(type_)
    if all(d.is_static for d in dims):
        return {}
    i64 = ir.IntegerType.get_signless(64)
    entries = [
        ir.IntegerAttr.get(i64, d.value) if d.is_static else ir.StringAttr.get(str(d)) for d in dims
    ]
    return {"metadef.dims": ir.ArrayAttr.get(entries)}


def _lower_op(kernel: Kernel, op: ir.OpView, stored: set[ir.Value]) -> None:
    values = find_lowering(op)(kernel, op)
    for result, value in zip(op.operation.results, values, strict=True):
        kernel.env[result] = value
        if result in stored and not isinstance(value.expr, Load):
            kernel.env[result] = kernel.store(value, result)


def find_lowering(op: ir.OpView) -> Lowering:
    """Return the lowering of an op.

    Raises:
        UnsupportedOpError: the op has none.
    """
    name = op.operation.name.removeprefix("metadef.")
    if name not in FAMILIES:
        raise UnsupportedOpError(
            f"'{op.operation.name}' op: no lowering to linalg; from {op.location}"
        )
    module = importlib.import_module(f"metadef.passes.linalg_lowerings.{FAMILIES[name]}")
    lowering: Lowering = getattr(module, f"lower_{name}")
    return lowering


def _finish(kernel: Kernel, results: list[ir.Value], outputs: list[ir.Value]) -> list[ir.Value]:
    """Write what is not in its output yet, one generic for each space; return the new results."""
    finished: list[ir.Value | None] = [None] * len(results)
    spaces: dict[tuple[Dim, ...], list[int]] = {}
    first = {result: i for i, result in reversed(list(enumerate(results)))}
    for i, result in enumerate(results):
        value = kernel.env[result]
        if result in kernel.claimed and first[result] == i:
            assert isinstance(value.expr, Load)
            finished[i] = reshape_tensor(kernel, value.expr.tensor, value.expr.dims, value.dims)
        else:
            spaces.setdefault(value.dims, []).append(i)
    for indices in spaces.values():
        values = [kernel.env[results[i]] for i in indices]
        targets = [
            kernel.whole(outputs[i], len(v.dims)) for i, v in zip(indices, values, strict=True)
        ]
        for i, tensor in zip(indices, kernel.compute(values, targets), strict=True):
            finished[i] = tensor
    return [t for t in finished if t is not None]

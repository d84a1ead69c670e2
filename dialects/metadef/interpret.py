"""Run a function or a program of metadef ops by the reference semantics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metadef import ir
from metadef.diagnostics import InputError, MetadefError, location_text

from .literals import numpy_dtype, round_to_bfloat16
from .reference.evaluate import evaluate, widen
from .types import dims_of

Array = np.ndarray[Any, Any]


def interpret(
    function: Any,
    inputs: Sequence[Array],
    weights: Mapping[str, Array] | None = None,
    symbols: Mapping[str, int] | None = None,
) -> list[Array]:
    """Return what a `func.func` of metadef ops gives for `inputs`, rounded to the result types.

    `weights` holds the tensors of `metadef.weight`. Symbols that are the dim of an input are read
    off the inputs; `symbols` gives the others. Dispatches run the functions beside `function`.

    Raises:
        InputError: inputs or weights do not fit.
        MetadefError: an op has no reference semantics.
    """
    results = _unrounded(function, inputs, weights or {}, symbols or {})
    types = ir.FunctionType(function.type).results
    return [round_to_type(r, t) for r, t in zip(results, types, strict=True)]


def interpret_program(
    module: ir.Module,
    inputs: Sequence[Array],
    weights: Mapping[str, Array] | None = None,
    symbols: Mapping[str, int] | None = None,
) -> list[Array]:
    """Return what `@main` gives for `inputs`, after `@init` (if there is one) has made its weights.

    Raises:
        MetadefError: as `interpret`, or the module has no `@main`.
    """
    functions = {f.name.value: f for f in module.body.operations if isinstance(f, ir.func.FuncOp)}
    if "main" not in functions:
        raise MetadefError(f"the module has no function 'main', only {', '.join(functions)}")
    known = dict(weights or {})
    if "init" in functions:
        init = functions["init"]
        names = [name.value for name in init.attributes["metadef.results"]]
        # In double precision, as every other value between two ops.
        known.update(zip(names, _unrounded(init, [], known, symbols or {}), strict=True))
    return interpret(functions["main"], inputs, known, symbols)


def _unrounded(
    function: Any,
    inputs: Sequence[Array],
    weights: Mapping[str, Array],
    symbols: Mapping[str, int],
) -> list[Array]:
    block = ir.entry_block(function)
    bound = bind_symbols([a.type for a in block.arguments], inputs, symbols)
    return _Run(function, weights, bound).block(block, [np.asarray(x) for x in inputs])


def bind_symbols(
    types: Sequence[ir.Type], inputs: Sequence[Array], known: Mapping[str, int]
) -> dict[str, int]:
    """Return the values of symbols, `known` ones and those that are themselves a dim of an input.

    Raises:
        InputError: the number of inputs, a rank or a dim is not what the types say.
    """
    if len(types) != len(inputs):
        raise InputError(f"expected {len(types)} inputs, got {len(inputs)}")
    values = dict(known)
    pairs = []
    for i, (type_, x) in enumerate(zip(types, inputs, strict=True)):
        dims, shape = dims_of(type_), np.shape(x)
        if len(dims) != len(shape):
            raise InputError(f"input {i}: expected rank {len(dims)}, got shape {list(shape)}")
        pairs += [(i, d, n) for d, n in zip(dims, shape, strict=True)]
    for _, dim, size in pairs:
        if str(dim) in dim.symbols:
            values.setdefault(str(dim), size)
    for i, dim, size in pairs:
        if dim.symbols <= values.keys() and dim.evaluate(values) != size:
            raise InputError(f"input {i}: expected dim {dim} = {dim.evaluate(values)}, got {size}")
    return values


def round_to_type(array: Array, type_: ir.Type) -> Array:
    """Return an array in the dtype of a tensor type (bf16: rounded, in float32)."""
    element = ir.RankedTensorType(type_).element_type
    with np.errstate(over="ignore", invalid="ignore"):
        if str(element) == "bf16":
            return round_to_bfloat16(array)
        return array.astype(numpy_dtype(element))


class _Run:
    """One call: the functions beside the entry, the weights, the symbols."""

    def __init__(self, function: Any, weights: Mapping[str, Array], symbols: Mapping[str, int]):
        self.weights = weights
        self.symbols = symbols
        self.functions = {
            str(op.name.value): op
            for op in function.operation.parent.regions[0].blocks[0].operations
            if isinstance(op, ir.func.FuncOp)
        }

    def block(self, block: ir.Block, inputs: Sequence[Array]) -> list[Array]:
        values: dict[Any, Array] = {}
        for argument, x in zip(block.arguments, inputs, strict=True):
            values[argument] = widen(x, argument.type)
        for op in block.operations:
            operands = [values[v] for v in op.operation.operands]
            if op.operation.name in ("func.return", "metadef.yield"):
                return operands
            for result, x in zip(op.operation.results, self.op(op, operands), strict=True):
                values[result] = x
        raise MetadefError("a block without func.return or metadef.yield cannot be interpreted")

    def op(self, op: Any, operands: list[Array]) -> list[Array]:
        name = op.operation.name
        if name == "metadef.weight":
            return [self.weight(op)]
        if name == "metadef.kernel":
            return self.block(ir.entry_block(op), operands)
        if name in ("metadef.dispatch", "func.call"):
            callee = op.attributes["kernel" if name == "metadef.dispatch" else "callee"].value
            if callee not in self.functions:
                raise MetadefError(f"'{name}' op: no function '{callee}'; from {_place(op)}")
            return self.block(ir.entry_block(self.functions[callee]), operands)
        return evaluate(op, operands, self.symbols)

    def weight(self, op: Any) -> Array:
        name = op.attributes["name"].value
        if name not in self.weights:
            raise InputError(f"no weight '{name}' was given; from {_place(op)}")
        array = np.asarray(self.weights[name])
        shape = ir.ShapedType(op.results[0].type).shape
        if list(array.shape) != list(shape):
            raise InputError(f"weight '{name}': expected {list(shape)}, got {list(array.shape)}")
        return widen(array, op.results[0].type)


def _place(op: Any) -> str:
    return location_text(op.location)

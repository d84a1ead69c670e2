"""Kernels compiled the plain way (loops, no vectors) and run beside the reference semantics."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from metadef import ir
from metadef.codegen.llvm import Optimisation, host_target, llvm_ir, object_code
from metadef.dialects.metadef.interpret import interpret
from metadef.dialects.metadef.literals import numpy_dtype
from metadef.dialects.metadef.types import dims_of, element_of, tensor_type
from metadef.passes.bufferize import Bufferize
from metadef.passes.lower_to_linalg import LowerToLinalg
from metadef.passes.lower_to_llvm import LowerToLlvm
from metadef.pipeline import run_passes
from metadef.runtime.jit import Library
from metadef.symbolic import DimLike

Array = np.ndarray[Any, Any]
Spec = tuple[Sequence[DimLike], str]
Build = Callable[..., Any]


def kernel_module(specs: Sequence[Spec], build: Build) -> ir.Module:
    """Return a module with one kernel `@k` whose body `build` makes from its arguments."""
    module = ir.Module.create()
    types = [tensor_type(dims, ir.Type.parse(element)) for dims, element in specs]
    with ir.InsertionPoint(module.body):
        function = ir.func.FuncOp("k", (types, []))
    function.attributes["metadef.kernel"] = ir.UnitAttr.get()
    with ir.InsertionPoint(function.add_entry_block()):
        built = build(*function.entry_block.arguments)
        results = [built] if isinstance(built, ir.Value) else list(built)
        ir.func.ReturnOp(results)
    function_type = ir.FunctionType.get(types, [r.type for r in results])
    function.attributes["function_type"] = ir.TypeAttr.get(function_type)
    assert module.operation.verify()
    return module


def compile_and_run(
    module: ir.Module, inputs: Sequence[Array], symbols: Mapping[str, int]
) -> list[Array]:
    """Compile the kernel `@k` without optimisation and return its outputs."""
    function = module.body.operations[0]
    results = list(ir.FunctionType(function.type).results)
    types = [*ir.FunctionType(function.type).inputs, *results]
    outputs = [
        np.full([d.evaluate(symbols) for d in dims_of(t)], 1, numpy_dtype(element_of(t)))
        for t in results
    ]
    run_passes(module, [LowerToLinalg(), Bufferize()])
    kernel = next(o for o in module.body.operations if "metadef.kernel" in o.attributes)
    attributes = [ir.DictAttr(a) for a in ir.ArrayAttr(kernel.attributes["arg_attrs"])]
    order = [a["metadef.symbol"].value for a in attributes if "metadef.symbol" in a]
    run_passes(module, [LowerToLlvm()])
    code = object_code(llvm_ir(module), host_target(), Optimisation(level=0, code_level=0))
    library = Library([code])
    arrays = [_to_memory(a, element_of(t)) for a, t in zip([*inputs, *outputs], types, strict=True)]
    before = [a.copy() for a in arrays[: len(inputs)]]
    pointers = (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))
    values = (ctypes.c_int64 * max(len(order), 1))(*(symbols[s] for s in order))
    signature = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64
    )
    signature(library.address("k"))(
        ctypes.cast(pointers, ctypes.c_void_p), ctypes.cast(values, ctypes.c_void_p), None, 0, 1
    )
    for array, old in zip(arrays, before, strict=False):
        np.testing.assert_array_equal(array, old, err_msg="an input was written")
    return [
        _from_memory(a, element_of(t)) for a, t in zip(arrays[len(inputs) :], results, strict=True)
    ]


def _to_memory(array: Array, element: ir.Type) -> Array:
    """Return an array as a kernel holds it: bf16, which numpy lacks, as its 16 bits."""
    array = np.ascontiguousarray(array)
    if isinstance(element, ir.BF16Type):
        return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return array


def _from_memory(array: Array, element: ir.Type) -> Array:
    if isinstance(element, ir.BF16Type):
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def run(
    specs: Sequence[Spec],
    build: Build,
    inputs: Sequence[Array],
    symbols: Mapping[str, int] | None = None,
) -> list[Array]:
    """Return what a kernel gives."""
    with ir.make_context(), ir.Location.unknown():
        return compile_and_run(kernel_module(specs, build), inputs, symbols or {})


def check(
    specs: Sequence[Spec],
    build: Build,
    inputs: Sequence[Array],
    symbols: Mapping[str, int] | None = None,
    tolerance: float = 1e-5,
) -> list[Array]:
    """Compare a kernel with its reference semantics; return what the kernel gave.

    `tolerance` is relative to 1 and to the value; integers and bools must be equal.
    """
    with ir.make_context(), ir.Location.unknown():
        module = kernel_module(specs, build)
        expected = interpret(module.body.operations[0], inputs, symbols=symbols or {})
        got = compile_and_run(module, inputs, symbols or {})
    for a, b in zip(got, expected, strict=True):
        if a.dtype.kind == "f" or b.dtype.kind == "f":
            np.testing.assert_allclose(
                a.astype(np.float64), b.astype(np.float64), rtol=tolerance, atol=tolerance
            )
        else:
            np.testing.assert_array_equal(a, b)
    return got

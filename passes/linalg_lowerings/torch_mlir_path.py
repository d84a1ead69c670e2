"""Torch ops to linalg by torch-mlir's own conversions, made fit for our kernels.

Text in, text out: a module with one function `@main` of torch ops becomes one of linalg, tensor,
scf, arith and math ops in which bools are bytes, and nothing private to torch-mlir is left.
"""

from __future__ import annotations

import re
from functools import lru_cache

from metadef import ir
from metadef.diagnostics import UnsupportedOpError

from .bool_storage import store_bools_as_bytes
from .tensor_rewrites import drop_overwritten_fills, rewrite_tensor_ops, unshare_destinations
from .tm_tensor import lower_tm_tensor

#: torch-mlir's pipelines end in contract checks that are not ours: its passes, one by one
PASSES = (
    "torchdynamo-export-to-torch-backend-pipeline",
    "func.func(convert-torch-to-tmtensor)",
    "func.func(canonicalize)",
    "func.func(convert-torch-to-linalg)",
    "func.func(convert-torch-to-tensor)",
    "func.func(convert-torch-to-scf)",
    "func.func(convert-torch-to-arith)",
    "torch-func-backend-type-conversion",
    "func.func(canonicalize)",
    "func.func(torch-finalizing-backend-type-conversion)",
    "inline",
    "func.func(linalg-generalize-named-ops,convert-elementwise-to-linalg)",
    "func.func(resolve-ranked-shaped-type-result-dims,resolve-shaped-type-result-dims)",
    "canonicalize",
)
_ILLEGAL = re.compile(r"failed to legalize operation 'torch\.(?:constant\.)?([\w.]+)'")
DIALECTS = frozenset({"arith", "builtin", "func", "linalg", "math", "scf", "tensor"})


@lru_cache(maxsize=1024)
def lowered_text(text: str) -> str:
    """Return the linalg form of a module of torch ops.

    Raises:
        UnsupportedOpError: torch-mlir refuses the module, or leaves something that is not ours.
    """
    context = ir.make_context()
    with context, ir.Location.unknown():
        # torch_c is only known to the parser once a pass that needs it has run.
        _run(ir.Module.create(), "torch-func-backend-type-conversion")
        module = ir.Module.parse(text)
        for step in PASSES:
            _run(module, step)
        function = _only_function(module)
        lower_tm_tensor(function)
        rewrite_tensor_ops(function)
        store_bools_as_bytes(function)
        _check(function)
        if not module.operation.verify():
            raise UnsupportedOpError("the linalg form does not verify")
        _run(module, "canonicalize")
        drop_overwritten_fills(_only_function(module))
        unshare_destinations(_only_function(module))
        return module.operation.get_asm(enable_debug_info=True)


def refusal(text: str) -> str | None:
    """Return why a module of torch ops cannot be lowered, or None if it can."""
    try:
        lowered_text(text)
    except UnsupportedOpError as error:
        return str(error)
    except ir.MLIRError as error:
        return str(error).splitlines()[0]
    return None


def _run(module: ir.Module, step: str) -> None:
    try:
        ir.passmanager.PassManager.parse(f"builtin.module({step})").run(module.operation)
    except ir.MLIRError as error:
        first = str(error.error_diagnostics[0].message) if error.error_diagnostics else str(error)
        if illegal := _ILLEGAL.search(first):
            left = f" of '{illegal[1]}'" if "." in illegal[1] else ""
            raise UnsupportedOpError(f"torch-mlir has no lowering{left}") from error
        # The message goes on with the op in full, after its name.
        raise UnsupportedOpError(f"torch-mlir's {step}: {first.split(': %')[0]}") from error


def _only_function(module: ir.Module) -> ir.OpView:
    functions = list(module.body.operations)
    if len(functions) != 1 or functions[0].operation.name != "func.func":
        names = ", ".join(sorted({op.operation.name for op in functions}))
        raise UnsupportedOpError(f"torch-mlir leaves more than a function: {names}")
    function = functions[0]
    if len(function.operation.regions[0].blocks) != 1:
        raise UnsupportedOpError("torch-mlir leaves a function of several blocks")
    return function


def _check(function: ir.OpView) -> None:
    for op in ir.operations(function):
        name = op.operation.name
        if name.split(".")[0] not in DIALECTS:
            raise UnsupportedOpError(f"torch-mlir leaves '{name}', which has no lowering")
        for value in op.operation.results:
            if "complex" in str(value.type):
                raise UnsupportedOpError("complex numbers have no lowering")

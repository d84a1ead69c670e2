"""Tries whether torch-mlir's conversions bring an op that metadef does not model down to linalg."""

from __future__ import annotations

import functools

from metadef import ir
from metadef.diagnostics import error_text

#: the passes of torch-mlir's own backend pipeline, without its contract check at the end
_PASSES = (
    "func.func(convert-torch-to-tmtensor)",
    "func.func(convert-torch-to-linalg)",
    "func.func(convert-torch-to-tensor)",
    "func.func(convert-torch-to-scf)",
    "func.func(convert-torch-to-arith)",
    "torch-func-backend-type-conversion",
    "func.func(torch-finalizing-backend-type-conversion)",
)


@functools.lru_cache(maxsize=1024)
def why_not_linalg(text: str) -> str | None:
    """Return None when each `metadef.opaque` of a module's text goes to linalg, or why one does not."""
    context = ir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        for op in ir.operations(module):
            if op.operation.name == "metadef.opaque":
                reason = _why_not(op)
                if reason is not None:
                    return reason
    return None


def _why_not(opaque: ir.OpView) -> str | None:
    block = ir.entry_block(opaque)
    module = ir.Module.create()
    yielded = block.operations[len(block.operations) - 1].operation
    types = ([a.type for a in block.arguments], [o.type for o in yielded.operands])
    with ir.InsertionPoint(module.body):
        function = ir.func.FuncOp("trial", types)
    body = function.add_entry_block()
    values = dict(zip(block.arguments, body.arguments, strict=True))
    with ir.InsertionPoint(body):
        for op in list(block.operations)[:-1]:
            copy = op.operation.clone()
            for i, operand in enumerate(op.operation.operands):
                copy.operands[i] = values[operand]
            values.update(zip(op.operation.results, copy.results, strict=True))
        ir.func.ReturnOp([values[o] for o in yielded.operands])
    try:
        passes = ",".join(_PASSES)
        ir.passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
    except ir.MLIRError as error:
        return f"torch-mlir cannot lower it: {error_text(error)}"
    left = [op for op in ir.operations(module) if op.operation.name.startswith("torch.")]
    if left:
        return f"torch-mlir leaves '{left[0].operation.name}'"
    return None

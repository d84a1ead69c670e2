"""`metadef.opaque`: torch-mlir lowers the region, the result is inlined into the kernel."""

from __future__ import annotations

from typing import Any

from metadef import ir

from .expression import Value
from .kernel import Kernel, result_type, tensor_value
from .opaque_probe import probe
from .torch_mlir_path import lowered_text


def lower_opaque(kernel: Kernel, op: Any) -> list[Value]:
    """Inline the linalg form of the region; operands are stored tensors.

    Raises:
        UnsupportedOpError: torch-mlir cannot lower the region.
    """
    stored = [kernel.stored(x) for x in op.operation.operands]
    module = ir.Module.parse(lowered_text(torch_module_text(op)))
    function = list(module.body.operations)[0]
    block = ir.entry_block(function)
    for (tensor, value), argument in zip(stored, block.arguments, strict=True):
        _replace_dims(kernel, argument, value)
        argument.replace_all_uses_with(_as_type(tensor, argument.type))
    *body, terminator = list(block.operations)
    place = ir.arith.constant(ir.IndexType.get(), 0).owner
    for inside in body:
        inside.operation.move_before(place)
    place.erase()
    values = []
    for i, result in enumerate(list(terminator.operation.operands)):
        dims, element = result_type(op, i)
        tensor = _as_type(result, kernel.tensor_type(dims, element))
        values.append(tensor_value(tensor, dims, element))
    return values


def _replace_dims(kernel: Kernel, argument: ir.Value, value: Value) -> None:
    """Give the run-time sizes of an argument the values of its dims."""
    for use in list(argument.uses):
        user = use.owner.operation
        if user.name == "tensor.dim" and isinstance(user.operands[1].owner, ir.OpView):
            number = user.operands[1].owner.operation.attributes["value"]
            dim = value.dims[ir.IntegerAttr(number).value]
            user.results[0].replace_all_uses_with(kernel.size(dim))


def _as_type(tensor: ir.Value, type_: ir.Type) -> ir.Value:
    if tensor.type == type_:
        return tensor
    return ir.Operation.create("tensor.cast", results=[type_], operands=[tensor]).result


def torch_module_text(op: ir.OpView) -> str:
    """Return a module whose function `@main` has the region of an opaque op as its body."""
    block = op.operation.regions[0].blocks[0]
    arguments = [a.type for a in block.arguments]
    results = [v.type for v in list(block.operations)[-1].operation.operands]
    with ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body):
            function = ir.func.FuncOp("main", (arguments, results))
            copy = op.operation.clone()
        body = copy.regions[0].blocks[0]
        body.append_to(function.regions[0])
        terminator = list(body.operations)[-1]
        with ir.InsertionPoint(terminator):
            ir.func.ReturnOp(list(terminator.operation.operands))
        terminator.operation.erase()
        copy.erase()
    return module.operation.get_asm(enable_debug_info=True)


def can_lower_opaque(op_or_module_text: ir.OpView | str) -> str | None:
    """Return why an opaque op, or a module of torch ops with one `@main`, cannot be lowered.

    None says that it can. Another process answers, because torch-mlir may abort.
    """
    text = op_or_module_text
    return probe(text if isinstance(text, str) else torch_module_text(text))

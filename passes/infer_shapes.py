"""Pass `infer-shapes`: result types follow from the operands, through every metadef op."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metadef import ir
from metadef.diagnostics import MetadefError, ShapeInferenceError, location_text
from metadef.dialects.metadef.op import MetadefOp
from metadef.dialects.metadef.shapes import disagreement, refine, shape_of, shape_of_type
from metadef.forms import FRONT
from metadef.pipeline import Pass


@dataclass(frozen=True)
class InferShapes(Pass):
    """Recompute the result types of all metadef ops from their operands by the shape functions.

    A declared dim that is better known than the inferred one (a static one for a symbolic one)
    stays. Types of block arguments of kernels and of the functions' results follow.

    Before:
        %0 = "metadef.softmax"(%x) {..} : (tensor<4xf32>) -> tensor<?xf32, #metadef.dims<["B"]>>
    After:
        %0 = "metadef.softmax"(%x) {..} : (tensor<4xf32>) -> tensor<4xf32>

    Raises:
        ShapeInferenceError: types contradict each other, or an op has no shape rule; names the op
            and its source line.
    """

    accepts = FRONT
    requires = "functions of metadef ops; every dynamic dim has a #metadef.dims expression"
    leaves = "the same, each result type being the best known one"

    def run(self, module: ir.Operation) -> None:
        for region in module.regions:
            for block in region:
                _infer_block(block)


def _infer_block(block: ir.Block) -> None:
    for op in list(block.operations):
        if isinstance(op, MetadefOp):
            _infer_op(op)
        else:
            _check_rule(op)
            for region in op.operation.regions:
                for inner in region:
                    _infer_block(inner)
            if isinstance(op, ir.func.FuncOp) and not op.is_external:
                _infer_function(op)


def _infer_op(op: Any) -> None:
    """Refine the results of a metadef op; a kernel's region first, an opaque one's never."""
    name = op.operation.name
    try:
        if name == "metadef.kernel":
            _infer_kernel(op)
        for result, inferred in zip(op.results, op.infer_results(), strict=True):
            declared = shape_of(result)
            if declared == inferred:
                continue
            contradiction = disagreement(declared, inferred)
            if contradiction is not None:
                raise ShapeInferenceError(f"result {result.result_number} has {contradiction}")
            result.set_type(refine(declared, inferred).type)
    except MetadefError as error:
        raise _located(op, str(error)) from None


def _infer_kernel(op: Any) -> None:
    block = ir.entry_block(op)
    for argument, operand in zip(block.arguments, op.operands, strict=True):
        declared, given = shape_of(argument), shape_of(operand)
        contradiction = disagreement(declared, given)
        if contradiction is not None:
            raise ShapeInferenceError(f"block argument {argument.arg_number} has {contradiction}")
        argument.set_type(given.type)
    _infer_block(block)


def _infer_function(function: ir.func.FuncOp) -> None:
    """Set the result types of a function to what it returns."""
    last = list(function.entry_block.operations)[-1]
    if last.operation.name != "func.return":
        return
    declared = list(function.type.results)
    returned = [x.type for x in last.operands]
    if returned == declared:
        return
    for i, (old, new) in enumerate(zip(declared, returned, strict=True)):
        if old != new and isinstance(old, ir.RankedTensorType):
            contradiction = disagreement(shape_of_type(old), shape_of_type(new))
            if contradiction is not None:
                raise _located(last, f"result {i} of the function has {contradiction}")
    inputs = list(function.type.inputs)
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, returned))


def _check_rule(op: Any) -> None:
    """Refuse a foreign op that gives a dynamic dim without an expression: nobody can infer it."""
    for result in op.operation.results:
        type_ = result.type
        if isinstance(type_, ir.RankedTensorType) and not (
            type_.has_static_shape or type_.encoding is not None
        ):
            raise _located(op, f"no shape rule, and its result {type_} has an unknown dim")


def _located(op: Any, problem: str) -> ShapeInferenceError:
    place = location_text(op.location)
    return ShapeInferenceError(f"'{op.operation.name}' op: {problem}; from {place}")

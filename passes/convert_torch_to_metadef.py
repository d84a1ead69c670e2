"""`convert-torch-to-metadef`: functions on torch types become functions of metadef ops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from metadef import ir
from metadef.diagnostics import MetadefError, ShapeInferenceError, UnsupportedOpError
from metadef.dialects.metadef.ops.weight import weight
from metadef.dialects.metadef.types import tensor_type
from metadef.forms import TORCH
from metadef.pipeline import Pass
from metadef.symbolic import Dim, same

from .torch_ops import build
from .torch_ops._opaque import wrap
from .torch_ops._types import (
    dim_from_affine,
    dims_from_attribute,
    result_types,
    tensor_type_of,
)
from .torch_ops.call import Call, ScalarTensor, TensorType, parse_vtensor, source_line
from .torch_ops.dtypes import f64, i64
from .torch_ops.literal import literal
from .torch_ops.ranges import Ranges
from .torch_ops.registry import NotModelled, conversions, is_modelled

__all__ = ["ConvertTorchToMetadef", "is_modelled"]


@dataclass(frozen=True)
class ConvertTorchToMetadef(Pass):
    """Replace torch ops by metadef ops, and torch types by builtin tensors with symbolic dims.

    Python scalars, sizes and lists are evaluated, not built. An op without a conversion becomes
    one `metadef.opaque`, which keeps it for torch-mlir's own lowering.

    Before:
        func.func @main(%x: !torch.vtensor<[?,4],f32> {metadef.dims = ["B", 4]},
                        %w: !torch.vtensor<[4],f32> {metadef.weight = "w"})
            -> !torch.vtensor<[?,4],f32> {
          %y = torch.aten.mul.Tensor %x, %w : !torch.vtensor<[?,4],f32>, !torch.vtensor<[4],f32>
                 -> !torch.vtensor<[?,4],f32>
          return %y : !torch.vtensor<[?,4],f32>
        }
    After:
        func.func @main(%x: tensor<?x4xf32, #metadef.dims<["B", 4]>>)
            -> tensor<?x4xf32, #metadef.dims<["B", 4]>> {
          %w = "metadef.weight"() <{name = "w"}> : () -> tensor<4xf32>
          %y = "metadef.pointwise"(%x, %w) <{fn = "mul"}>
          return %y
        }
    """

    accepts = TORCH
    requires: ClassVar[str] = "functions of torch ops with value semantics (!torch.vtensor)"
    leaves: ClassVar[str] = "functions of metadef ops on tensors with symbolic dims"

    def run(self, module: ir.Operation) -> None:
        for op in list(module.regions[0].blocks[0].operations):
            if op.operation.name == "func.func" and _mentions_torch(op):
                _Function(module, op).convert()


class _Unknown:
    """A bool or number that depends on symbols in a way metadef cannot say; fine while unused."""


_UNKNOWN = _Unknown()
_IGNORE_UNKNOWN = ("torch.aten._assert_scalar", "torch.aten._assert_async.msg")


class _Function:
    """Builds the converted function next to the old one, then takes its place."""

    def __init__(self, module: ir.Operation, old: Any) -> None:
        self.module = module
        self.old = old
        self.ranges = Ranges.of(module)
        self.values: dict[ir.Value, Any] = {}
        self.bound: dict[ir.Value, tuple[Dim, ...]] = {}

    def convert(self) -> None:
        body = self.old.regions[0].blocks
        if len(body) != 1:
            raise UnsupportedOpError(
                f"function @{self.name}: expected one block, got {len(body)}; "
                f"from {source_line(self.old.location)}"
            )
        self._bind_symbols(body[0])
        inputs = self._inputs(body[0])
        with ir.InsertionPoint(self.old), self.old.location:
            new = ir.func.FuncOp(self.name, ([t for _, t, _ in inputs], []))
            block = new.add_entry_block([argument.location for argument, _, _ in inputs])
        for (argument, _, _), value in zip(inputs, block.arguments, strict=True):
            self.values[argument] = value
        with ir.InsertionPoint(block):
            self._weights(body[0])
            for op in body[0].operations:
                with op.operation.location:
                    self._convert(op.operation)
        self._finish(new, block, [attributes for _, _, attributes in inputs])

    @property
    def name(self) -> str:
        return ir.StringAttr(self.old.attributes["sym_name"]).value

    def _attributes(self, index: int) -> dict[str, ir.Attribute]:
        if "arg_attrs" not in self.old.attributes:
            return {}
        return {a.name: a.attr for a in ir.DictAttr(self.old.attributes["arg_attrs"][index])}

    def _bind_symbols(self, block: ir.Block) -> None:
        """Read torch-mlir's own form of symbolic shapes, where the module has it."""
        declared = dict[str, ir.Attribute]()
        for op in block.operations:
            name, attributes = op.operation.name, op.operation.attributes
            if name == "torch.symbolic_int" and "metadef.dim" not in attributes:
                symbol = ir.StringAttr(attributes["symbol_name"]).value
                self.values[op.operation.results[0]] = Dim.of(symbol)
                low, high = (ir.IntegerAttr(attributes[k]).value for k in ("min_val", "max_val"))
                if symbol.isidentifier():
                    declared[symbol] = _symbol_attribute(low, high)
            elif name == "torch.bind_symbolic_shape":
                tensor, *symbols = op.operation.operands
                dims = [self.values[s] for s in symbols]
                expressions = ir.AffineMapAttr(attributes["shape_expressions"]).value
                self.bound[tensor] = tuple(dim_from_affine(e, dims) for e in expressions.results)
        self._declare(declared)

    def _declare(self, symbols: dict[str, ir.Attribute]) -> None:
        """Add symbols to the module's `metadef.symbols`, keeping those already there."""
        if not symbols:
            return
        if "metadef.symbols" in self.module.attributes:
            present = ir.DictAttr(self.module.attributes["metadef.symbols"])
            symbols = symbols | {a.name: a.attr for a in present}
        self.module.attributes["metadef.symbols"] = ir.DictAttr.get(symbols)
        self.ranges = Ranges.of(self.module)

    def _inputs(self, block: ir.Block) -> list[tuple[ir.Value, ir.Type, dict[str, ir.Attribute]]]:
        """Return the arguments that stay, tensors that are no weights, with type and attributes."""
        kept = []
        fresh: dict[str, ir.Attribute] = {}
        for index, argument in enumerate(block.arguments):
            attributes = self._attributes(index)
            if "metadef.symbol" in attributes:
                text = ir.StringAttr(attributes["metadef.symbol"]).value
                self.values[argument] = build.simplified(Dim.of(text))
                continue
            declared = attributes.pop("metadef.dims", None)
            dims = dims_from_attribute(declared) if declared else self.bound.get(argument)
            kind = tensor_type_of(argument.type, dims)
            if kind is None:
                raise UnsupportedOpError(
                    f"argument {index} of @{self.name}: expected a !torch.vtensor or an int with "
                    f"metadef.symbol, got {argument.type}"
                )
            if "metadef.weight" in attributes:
                continue
            if kind.dims is None:
                kind = self._with_fresh_symbols(index, argument, kind, fresh)
            assert kind.dims is not None
            kept.append((argument, tensor_type(kind.dims, kind.element), attributes))
        self._declare(fresh)
        return kept

    def _with_fresh_symbols(
        self, index: int, argument: ir.Value, kind: TensorType, fresh: dict[str, ir.Attribute]
    ) -> TensorType:
        """Name each `?` of an argument that nobody named: `arg0_d1`, any size from 0."""
        sizes = _static_sizes(argument.type)
        dims = []
        for i, size in enumerate(sizes):
            if size is None:
                fresh[f"arg{index}_d{i}"] = _symbol_attribute(0, 2**63 - 1)
            dims.append(Dim.of(f"arg{index}_d{i}" if size is None else size))
        return TensorType(kind.element, tuple(dims), kind.rank)

    def _weights(self, block: ir.Block) -> None:
        """Build one `metadef.weight` a name; tied weights are one value."""
        built: dict[str, ir.Value] = {}
        for index, argument in enumerate(block.arguments):
            attribute = self._attributes(index).get("metadef.weight")
            if attribute is None:
                continue
            name = ir.StringAttr(attribute).value
            if name not in built:
                kind = tensor_type_of(argument.type, None)
                assert kind is not None
                if kind.dims is None:
                    raise ShapeInferenceError(f"weight '{name}': expected static dims")
                with argument.location:
                    built[name] = weight(name, tensor_type(kind.dims, kind.element))
            self.values[argument] = built[name]

    def _convert(self, op: ir.Operation) -> None:
        name = op.name
        if "metadef.dim" in op.attributes:
            dim = Dim.of(ir.StringAttr(op.attributes["metadef.dim"]).value)
            if dim.symbols <= self.ranges.symbols.keys() or name == "torch.symbolic_int":
                self.values[op.results[0]] = build.simplified(dim)
                return
        if name in ("torch.symbolic_int", "torch.bind_symbolic_shape"):
            return
        if name in ("func.return", "torch.runtime.return"):
            self._return(op)
            return
        if name.startswith("torch.constant.") or name.startswith("torch.vtensor.literal"):
            self.values[op.results[0]] = literal(op)
            return
        if name.startswith("torch_c."):
            self.values[op.results[0]] = self.values[op.operands[0]]
            return
        if not name.startswith("torch."):
            raise UnsupportedOpError(
                f"'{name}' op: expected a torch op in @{self.name}; from {source_line(op.location)}"
            )
        if name == "torch.operator":
            name = ir.StringAttr(op.attributes["name"]).value
        try:
            kinds = result_types(op, self.bound)
        except UnsupportedOpError as error:
            where = source_line(op.location)
            raise UnsupportedOpError(f"'{name}' op: {error}; from {where}") from error
        call = Call(op, name, kinds, self.ranges)
        results = self._results(call)
        for result, kind, value in zip(op.results, call.results, results, strict=True):
            self.values[result] = self._checked(call, kind, value) if kind else value

    def _results(self, call: Call) -> list[Any]:
        """Return the values of the op's results: converted, or those of a `metadef.opaque`."""
        arguments = [self.values[o] for o in call.op.operands]
        if any(a is _UNKNOWN for a in arguments):
            if call.name in _IGNORE_UNKNOWN:
                return []
            call.fail("a scalar operand depends on symbols in a way metadef cannot evaluate")
        conversion = conversions().get(call.name)
        try:
            if conversion is None:
                raise NotModelled
            value = conversion(call, *arguments)
        except NotModelled:
            if len(call.results) == 1 and call.results[0] is None:
                return [_UNKNOWN]
            return list(wrap(call, self.values))
        except ShapeInferenceError as error:
            if "; from " in str(error):
                raise
            call.fail(str(error))
        except MetadefError as error:
            where = source_line(call.op.location)
            raise type(error)(f"'{call.name}' op: {error}; from {where}") from error
        return list(value) if isinstance(value, tuple) else [value]

    def _checked(self, call: Call, kind: TensorType, value: Any) -> Any:
        """Return a result with torch's own dims, once dtype and dims are known to agree."""
        if not isinstance(value, ir.Value):
            return value  # a number, or an unused result
        element = build.element(value)
        assert element == kind.element, f"{call.name}: built {element}, torch says {kind.element}"
        if kind.dims is None:
            return value
        inferred = build.dims(value)
        agrees = len(inferred) == len(kind.dims) and all(
            same(a, b) is not False for a, b in zip(inferred, kind.dims, strict=True)
        )
        if not agrees:
            said = list(kind.dims)
            call.fail(f"dims {list(inferred)} follow from the operands, torch says {said}")
        return build.reshape(value, kind.dims)

    def _return(self, op: ir.Operation) -> None:
        values = []
        for operand in op.operands:
            value = self.values[operand]
            if not isinstance(value, ir.Value):
                if value is None or isinstance(value, str | list | _Unknown):
                    raise UnsupportedOpError(
                        f"@{self.name} returns {operand.type}; expected a tensor or a number"
                    )
                kind = tensor_type_of(operand.type, None)
                value = build.number(value, kind.element if kind else _scalar_element(value))
            values.append(value)
        ir.func.ReturnOp(values)

    def _finish(self, new: Any, block: ir.Block, attributes: list[dict[str, ir.Attribute]]) -> None:
        """Give the new function its type and the old one's attributes, and drop the old one."""
        returned = [o.type for o in block.operations[len(block.operations) - 1].operands]
        inputs = [a.type for a in block.arguments]
        new.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, returned))
        for name, attribute in self.old.attributes.items():
            if name not in ("sym_name", "function_type", "arg_attrs", "res_attrs"):
                new.attributes[name] = attribute
        if any(attributes):
            new.attributes["arg_attrs"] = ir.ArrayAttr.get(
                [ir.DictAttr.get(each) for each in attributes]
            )
        if "res_attrs" in self.old.attributes:
            new.attributes["res_attrs"] = self.old.attributes["res_attrs"]
        self.old.operation.erase()


def _mentions_torch(function: Any) -> bool:
    if "!torch." in str(ir.TypeAttr(function.attributes["function_type"]).value):
        return True
    return any(op.operation.name.startswith("torch.") for op in ir.operations(function))


def _static_sizes(torch_type: ir.Type) -> tuple[int | None, ...]:
    parsed = parse_vtensor(str(torch_type))
    assert parsed is not None
    return parsed[1]


def _symbol_attribute(low: int, high: int) -> ir.Attribute:
    values = {"min": low, "max": high, "divisor": 1}
    return ir.DictAttr.get({k: ir.IntegerAttr.get(i64(), v) for k, v in values.items()})


def _scalar_element(value: Any) -> ir.Type:
    if isinstance(value, ScalarTensor):
        return build.element(value.value)
    return f64() if isinstance(value, float) else i64()

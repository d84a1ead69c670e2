"""From a captured fx graph to a module of the torch dialect, without touching a weight's data.

Every placeholder becomes an argument of `@main`. What an argument or a result is, is said by
attributes instead of ops:

    func.func @main(%arg0: !torch.vtensor<[768,768],f32> {metadef.weight = "fc.weight"},
                    %arg1: !torch.vtensor<[?,768],f32> {metadef.dims = ["B", 768]},
                    %arg2: !torch.int {metadef.symbol = "B"})
      %0 = torch.aten.relu %arg1 {metadef.dims = [["B", 768]]} : ...
      %1 = torch.aten.size.int %arg1, %int0 {metadef.dim = "B"} : ...
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch_mlir.extras.fx_importer import ContextCache, FxImporter, GraphNodeImporter

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.symbolic import Dim

from .node_names import source_line
from .symbols import SymbolRange, Symbols

if TYPE_CHECKING:
    from .bindings import Source


def import_graph(
    module: fx.GraphModule,
    sources: Mapping[fx.Node, Source],
    symbols: Symbols,
    context: ir.Context | None = None,
) -> ir.Module:
    """Import a functional graph of aten ops as `@main` in a new module.

    Raises:
        MetadefError: the graph holds something that the torch dialect cannot say.
    """
    context = context or ir.make_context()
    importer = FxImporter(
        context=context,
        config_check=False,
        graph_node_importer_cls=functools.partial(_NodeImporter, symbols),
    )
    importer._cc = _Context(context, py_attr_tracker=importer._py_attr_tracker)
    try:
        func = importer.import_stateless_graph(module.graph)
    except (NotImplementedError, TypeError, AssertionError, KeyError) as error:
        words = str(error).splitlines()[0][:300] if str(error) else type(error).__name__
        raise MetadefError(f"cannot import the graph into the torch dialect: {words}") from error
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    with context, ir.Location.unknown():
        func.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [_argument_attributes(node, sources.get(node), symbols) for node in placeholders]
        )
        mlir_module = importer.module
        mlir_module.operation.attributes["metadef.symbols"] = _symbols_attribute(symbols.ranges())
    return mlir_module


class _Context(ContextCache):
    """Locates each node at the innermost line of the model that made it."""

    def get_node_location(self, node: fx.Node) -> ir.Location | None:
        place = source_line(node)
        if place is None:
            return None
        return ir.Location.file(place[0], place[1], 0, context=self._c)


class _NodeImporter(GraphNodeImporter):
    """Adds the dims of dynamic results and the expressions of integers to each op."""

    def __init__(self, symbols: Symbols, *args: Any) -> None:
        super().__init__(*args)
        self._symbols = symbols

    def _import_torch_op_overload(
        self, loc: ir.Location, node: fx.Node, concrete_target: Any = None
    ) -> None:
        if node.target is torch.ops.aten._embedding_bag_forward_only.default:
            # torch-mlir renames it to an op for which padding_idx = -1 means the last row.
            concrete_target = node.target
        super()._import_torch_op_overload(loc, node, concrete_target)
        if (node, 0) in self._v:
            self._annotate(self._v[(node, 0)].owner, node.meta.get("val"))

    def import_nodes(self, nodes: Iterable[fx.Node], **options: Any) -> None:
        super().import_nodes(self._without_size_arithmetic(nodes), **options)

    def _without_size_arithmetic(self, nodes: Iterable[fx.Node]) -> Iterator[fx.Node]:
        """Import integer arithmetic on sizes here, whatever its function; yield the other nodes."""
        for node in nodes:
            value = node.meta.get("val")
            if (
                node.op == "call_function"
                and isinstance(value, torch.SymInt)
                and not isinstance(node.target, torch._ops.OpOverload)
                and node.target is not operator.getitem
            ):
                loc = self._cc.get_node_location(node) or ir.Location.unknown()
                self._import_size(loc, node, value)
            else:
                yield node

    def _import_size(self, loc: ir.Location, node: fx.Node, value: torch.SymInt) -> None:
        """Emit one op that carries the whole expression."""
        operation = ir.Operation.create(
            "torch.symbolic_int",
            results=[self._cc.torch_int_type],
            attributes={
                "symbol_name": ir.StringAttr.get(str(self._symbols.dim(value))),
                "min_val": self._cc.integer_attr(-(2**63), 64),
                "max_val": self._cc.integer_attr(2**63 - 1, 64),
            },
            loc=loc,
        )
        self._annotate(operation, value)
        self.bind_node_value(node, operation.result)

    def _import_getitem(self, loc: ir.Location, node: fx.Node) -> None:
        super()._import_getitem(loc, node)
        owner = self._v[(node, 0)].owner
        if owner.name == "torch.prim.ListUnpack":
            self._annotate(owner, node.all_input_nodes[0].meta["val"])

    def _annotate(self, operation: ir.Operation, value: Any) -> None:
        if isinstance(value, torch.SymInt):
            operation.attributes["metadef.dim"] = ir.StringAttr.get(str(self._symbols.dim(value)))
            return
        values = list(value) if isinstance(value, list | tuple) else [value]
        if any(_is_dynamic(v) for v in values):
            operation.attributes["metadef.dims"] = ir.ArrayAttr.get(
                [_dims_attribute(v, self._symbols) for v in values]
            )


def _is_dynamic(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and any(
        isinstance(size, torch.SymInt) for size in value.shape
    )


def _dims_attribute(value: Any, symbols: Symbols) -> ir.ArrayAttr:
    shape: Sequence[Any] = value.shape if isinstance(value, torch.Tensor) else ()
    return ir.ArrayAttr.get([_dim_attribute(symbols.dim(size)) for size in shape])


def _dim_attribute(dim: Dim) -> ir.Attribute:
    if dim.is_static:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), dim.value)
    return ir.StringAttr.get(str(dim))


def _argument_attributes(node: fx.Node, source: Source | None, symbols: Symbols) -> ir.DictAttr:
    attributes: dict[str, ir.Attribute] = {}
    value = node.meta.get("val")
    if source is not None and source.kind == "weight":
        attributes["metadef.weight"] = ir.StringAttr.get(source.name)
    if isinstance(value, torch.SymInt):
        attributes["metadef.symbol"] = ir.StringAttr.get(str(symbols.dim(value)))
    elif _is_dynamic(value):
        attributes["metadef.dims"] = _dims_attribute(value, symbols)
    return ir.DictAttr.get(attributes)


def _symbols_attribute(ranges: Mapping[str, SymbolRange]) -> ir.DictAttr:
    i64 = ir.IntegerType.get_signless(64)
    return ir.DictAttr.get(
        {
            name: ir.DictAttr.get(
                {
                    "min": ir.IntegerAttr.get(i64, r.min),
                    "max": ir.IntegerAttr.get(i64, r.max),
                    "divisor": ir.IntegerAttr.get(i64, r.divisor),
                }
            )
            for name, r in ranges.items()
        }
    )

"""Says for each op of a graph who runs it: native code, native code by way of linalg, or torch."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import fx

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.pass_runner import PassRunner

from .importer import import_graph
from .node_names import line_of, op_name
from .strided_views import restrided
from .symbols import Symbols, UnsupportedExpressionError
from .verdict import Kind, Verdict

_NATIVE_DTYPES = {
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
}


#: the source line, which a verdict has in a field of its own
_PLACE = re.compile(r"; from [^;]*:\d+$")
#: the name of a kernel that has the op alone
_KERNEL = re.compile(r"^kernel '\w+' \(from .*?\): ")

#: checks of sizes that depend on data
_ASSERTIONS = {
    torch.ops.aten._assert_scalar.default,
    torch.ops.aten.sym_constrain_range.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
}


class Support:
    """Gives verdicts for the nodes of one graph; equal ops with equal operands are tried once."""

    def __init__(self, symbols: Symbols, why_not: Callable[[ir.Module], str | None]) -> None:
        """`why_not` brings the converted module of one op down to object code: None, or why not."""
        self._symbols = symbols
        self._why_not = why_not
        self._tried: dict[object, tuple[Kind, str]] = {}
        self._context: ir.Context | None = None

    def verdicts(self, graph: fx.Graph, *, to_object_code: bool = False) -> dict[fx.Node, Verdict]:
        """Return the verdict of every op of the graph (not of placeholders and outputs).

        What metadef models counts as native; with `to_object_code` it has to compile, too.
        """
        if to_object_code:
            self._tried.clear()
        found = {}
        for node in graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                kind, reason = self._verdict(node, to_object_code)
                found[node] = Verdict(op_name(node), kind, reason, line_of(node))
        self._context = None  # it has all that was tried in its memory
        return found

    def _verdict(self, node: fx.Node, to_object_code: bool) -> tuple[Kind, str]:
        target, value = node.target, node.meta.get("val")
        if isinstance(value, torch.SymInt) and not isinstance(target, torch._ops.OpOverload):
            return self._size_verdict(value)
        if isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool | int | float) and not (
            any(True for _ in _tensors(node))
        ):
            return "host", ""
        if target in _ASSERTIONS:
            return "host", ""
        if target is restrided:
            return "host", ""
        if not isinstance(target, torch._ops.OpOverload):
            return "eager", "a higher-order operator"
        if target is torch.ops.aten.as_strided.default:
            return "eager", "depends on strides in a way that no index says"
        if _is_random(node):
            return "eager", "draws from torch's random generator"
        if node.meta.get("unbacked_bindings"):
            return "eager", "the size of its result depends on the data"
        if not target._schema.returns:
            return "eager", "has an effect and no result"
        for tensor in _tensors(node):
            if tensor.dtype not in _NATIVE_DTYPES:
                return "eager", f"{str(tensor.dtype).removeprefix('torch.')} tensors"
            if tensor.layout is not torch.strided:
                return "eager", f"tensors of layout {tensor.layout}"
        key = _key(node)
        if key not in self._tried:
            self._tried[key] = self._try(node, to_object_code)
        return self._tried[key]

    def _size_verdict(self, value: torch.SymInt) -> tuple[Kind, str]:
        try:
            self._symbols.dim(value)
        except UnsupportedExpressionError:
            return "host", ""
        return "native", ""

    def _try(self, node: fx.Node, to_object_code: bool) -> tuple[Kind, str]:
        from metadef.passes.convert_torch_to_metadef import ConvertTorchToMetadef

        self._context = self._context or ir.make_context()
        try:
            module = import_graph(_alone(node), {}, self._symbols, self._context)
            PassRunner(keep_failures=False).run(module, [ConvertTorchToMetadef()])
        except MetadefError as error:
            return "eager", _PLACE.sub("", str(error).splitlines()[0])
        modelled = not any(op.operation.name == "metadef.opaque" for op in ir.operations(module))
        if modelled and not to_object_code:
            return "native", ""
        why_not = self._why_not(module)
        if why_not is not None:
            return "eager", _KERNEL.sub("", why_not)
        return ("native" if modelled else "linalg"), ""


def _is_random(node: fx.Node) -> bool:
    """Say whether the op draws random numbers: attention does only where it has dropout."""
    target: Any = node.target
    if target is torch.ops.aten.scaled_dot_product_attention.default:
        dropout = node.args[4] if len(node.args) > 4 else node.kwargs.get("dropout_p", 0.0)
        return not (isinstance(dropout, float | int) and dropout == 0.0)
    return torch.Tag.nondeterministic_seeded in target.tags


def _tensors(node: fx.Node) -> Iterable[torch.Tensor]:
    for value in [n.meta.get("val") for n in (*node.all_input_nodes, node)]:
        for item in value if isinstance(value, list | tuple) else [value]:
            if isinstance(item, torch.Tensor):
                yield item


def _key(node: fx.Node) -> object:
    """Return what two nodes share when one trial answers for both."""

    def describe(value: Any) -> object:
        if isinstance(value, fx.Node):
            return describe(value.meta.get("val"))
        if isinstance(value, torch.Tensor):
            return (value.dtype, tuple(str(size) for size in value.shape))
        if isinstance(value, list | tuple):
            return tuple(describe(v) for v in value)
        return str(value)

    keywords = tuple((k, describe(v)) for k, v in node.kwargs.items())
    value = describe(node.meta.get("val"))
    return (node.target, describe(node.args), keywords, value, tuple(_read_results(node)))


def _read_results(node: fx.Node) -> list[int]:
    """Return which of an op's several results the graph reads."""
    read = {user.args[1] for user in node.users if user.target is operator.getitem}
    return sorted(index for index in read if isinstance(index, int))


def _alone(node: fx.Node) -> fx.GraphModule:
    """Return a graph that has only the node, with placeholders for its operands."""
    graph = fx.Graph()
    inputs: dict[fx.Node, fx.Node] = {}
    for operand in node.all_input_nodes:
        inputs[operand] = graph.placeholder(operand.name)
        inputs[operand].meta["val"] = operand.meta["val"]
    copy = graph.node_copy(node, lambda n: inputs[n])
    value = node.meta.get("val")
    results = [copy]
    if isinstance(value, list | tuple):
        results = []
        for i in _read_results(node):
            if value[i] is not None:
                results.append(graph.call_function(operator.getitem, (copy, i)))
                results[-1].meta["val"] = value[i]
    graph.output(tuple(results))
    return fx.GraphModule(torch.nn.Module(), graph)

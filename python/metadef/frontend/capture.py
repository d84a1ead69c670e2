"""What the front end knows of a model: a functional aten graph, and what goes in and out."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx._lazy_graph_module import _make_graph_module

from metadef.symbolic import Dim

from .bindings import Mutation, Output, Source
from .strided_views import Layout, settle_strided_views
from .symbols import Symbols, UnsupportedExpressionError
from .weights import WeightStore


@dataclass
class Capture:
    """A functional aten graph with distinct outputs; `source_of` tells about its placeholders.

    `layouts` says of some leaves of the call how they have to lie in memory.
    """

    module: fx.GraphModule
    source_of: dict[fx.Node, Source]
    outputs: list[Output]
    mutations: list[Mutation]
    weights: WeightStore
    symbols: Symbols
    layouts: dict[int, Layout]

    def bindings(self) -> list[tuple[fx.Node, Source]]:
        """Return each placeholder with its source, in order."""
        nodes = [n for n in self.module.graph.nodes if n.op == "placeholder"]
        return [(node, self.source_of[node]) for node in nodes]


#: assertions that hold by the checks of the call's own signature, or restate dtypes known at export
_REDUNDANT = {
    torch.ops.aten._assert_tensor_metadata.default,
    torch.ops.aten.sym_constrain_range_for_size.default,
    torch.ops.aten.sym_constrain_range.default,
}

_IDENTITIES = {
    torch.ops.aten.alias.default,
    torch.ops.aten.detach.default,
    torch.ops.aten.lift_fresh_copy.default,
}


def capture(
    module: fx.GraphModule,
    sources: dict[fx.Node, Source | None],
    results: Sequence[Any],
    mutations: Sequence[tuple[fx.Node, Source]],
    weights: WeightStore,
    symbols: Symbols,
) -> Capture:
    """Normalise a graph: one placeholder for each tensor, lifted constants, distinct outputs.

    `sources` says what each placeholder is (None: a constant that the graph does not read),
    `results` are the values the model returns, nodes or constants.
    """
    graph = module.graph
    known = {node: source for node, source in sources.items() if source is not None}
    output_node = graph.output_node()
    # As arguments of the output the results follow every replacement below.
    output_node.args = ((*results, *(node for node, _ in mutations)),)
    _drop_redundant_nodes(graph)
    layouts = settle_strided_views(module, known, symbols)
    _lift_attributes(module, known, weights)
    _merge_tied(known)
    told = _input_symbols(known, symbols)
    outputs, values = _outputs(output_node.args[0], known, symbols, told)
    count = len(results)
    written = [
        Mutation(value, target)
        for value, (_, target) in zip(outputs[count:], mutations, strict=True)
    ]
    output_node.args = (tuple(values),)
    graph.eliminate_dead_code(is_impure_node=_has_effect)
    for node in [n for n in graph.nodes if n.op == "placeholder" and not n.users]:
        graph.erase_node(node)
        known.pop(node, None)
    return Capture(module, known, outputs[:count], written, weights, symbols, layouts)


def copy_graph(module: fx.GraphModule) -> tuple[fx.GraphModule, dict[fx.Node, fx.Node]]:
    """Return a module with a copy of the graph, and each node's twin there."""
    graph = fx.Graph()
    twins: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(module.graph, twins))
    return _make_graph_module(module, graph), twins


def _has_effect(node: fx.Node) -> bool:
    """Say whether a node without users must stay; a functional graph has few of those."""
    return node.op in ("placeholder", "output") or (
        isinstance(node.target, torch._ops.OpOverload)
        and (node.target._schema.is_mutable or not node.target._schema.returns)
    )


def _outputs(
    results: Any,
    sources: dict[fx.Node, Source],
    symbols: Symbols,
    told: frozenset[str],
) -> tuple[list[Output], list[fx.Node]]:
    """Return what each result is, and the distinct nodes that the graph has to compute."""
    values: list[fx.Node] = []
    outputs = []
    for result in results:
        if not isinstance(result, fx.Node):
            outputs.append(Output("constant", constant=result))
            continue
        source = sources.get(result)
        size = _size(result, symbols, told)
        if size is not None:
            outputs.append(Output("size", dim=size))
        elif source is not None:
            kind: Any = "argument" if source.kind == "argument" else "weight"
            outputs.append(Output(kind, index=source.index, name=source.name))
        else:
            if result not in values:
                values.append(result)
            outputs.append(Output("value", index=values.index(result)))
    return outputs, values


def _size(node: fx.Node, symbols: Symbols, known: frozenset[str]) -> Dim | None:
    """Return the dim expression of an integer node when it follows from `known` symbols."""
    value = node.meta.get("val")
    if not isinstance(value, torch.SymInt):
        return None
    try:
        dim = symbols.dim(value)
    except UnsupportedExpressionError:
        return None
    return dim if dim.symbols <= known else None


def _input_symbols(sources: Iterable[fx.Node], symbols: Symbols) -> frozenset[str]:
    """Return the symbols that the inputs' shapes and integers tell."""
    found: set[str] = set()
    for node in sources:
        value = node.meta.get("val")
        sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
        for size in sizes:
            if isinstance(size, torch.SymInt):
                found |= symbols.dim(size).symbols
    return frozenset(found)


def _drop_redundant_nodes(graph: fx.Graph) -> None:
    for node in list(graph.nodes):
        if node.target in _REDUNDANT and not node.users:
            graph.erase_node(node)
        elif node.target in _IDENTITIES or _is_dropped_dropout(node):
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _is_dropped_dropout(node: fx.Node) -> bool:
    return node.target is torch.ops.aten.dropout.default and node.args[2] is False


def _lift_attributes(
    module: fx.GraphModule, sources: dict[fx.Node, Source], weights: WeightStore
) -> None:
    """Replace `get_attr` of tensors by placeholders bound to the store."""
    graph = module.graph
    first = next(iter(graph.nodes))
    for node in [n for n in graph.nodes if n.op == "get_attr"]:
        value = operator.attrgetter(str(node.target))(module)
        if not isinstance(value, torch.Tensor):
            continue
        with graph.inserting_before(first):
            placeholder = graph.placeholder(f"constant_{node.name}")
        placeholder.meta.update(node.meta)
        placeholder.meta["val"] = FakeTensorMode().from_tensor(value.detach())
        sources[placeholder] = Source("weight", name=weights.add(str(node.target), value))
        node.replace_all_uses_with(placeholder)
        graph.erase_node(node)


def _merge_tied(sources: dict[fx.Node, Source]) -> None:
    """Let tied weights have one placeholder."""
    first: dict[Source, fx.Node] = {}
    for node, source in sources.items():
        if source.kind == "argument":
            continue
        owner = first.setdefault(source, node)
        if owner is not node:
            node.replace_all_uses_with(owner)

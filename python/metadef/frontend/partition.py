"""Splits a graph into native parts and the ops between them that torch runs itself."""

from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from metadef.diagnostics import MetadefWarning, UnsupportedOpError

from .bindings import Source
from .capture import Capture, capture, copy_graph
from .verdict import Verdict


def report_fallbacks(verdicts: Iterable[Verdict], fallback: str) -> None:
    """Warn of the ops that torch runs, all in one warning.

    Raises:
        UnsupportedOpError: there are such ops and `fallback` is "error".
    """
    eager = [verdict for verdict in verdicts if verdict.kind == "eager"]
    if not eager:
        return
    distinct = list(dict.fromkeys(eager))
    first, *others = distinct
    if fallback == "error":
        raise UnsupportedOpError(
            f"op '{first.op}'{_from(first)}: {first.reason}{_more(others)}; "
            "fallback='eager' lets torch run such ops"
        )
    listed = "; ".join(f"'{v.op}'{_from(v)}: {v.reason}" for v in distinct[:5])
    more = f"; and {len(distinct) - 5} more, see .report()" if len(distinct) > 5 else ""
    warnings.warn(f"torch runs {len(eager)} op(s) in eager mode: {listed}{more}", MetadefWarning, 6)


def _from(verdict: Verdict) -> str:
    return f" from {verdict.line}" if verdict.line else ""


def _more(others: list[Verdict]) -> str:
    return f", and {len(others)} other(s)" if others else ""


_STRIDED_VIEWS = (torch.ops.aten.view.default, torch.ops.aten._unsafe_view.default)


class _Native(OperatorSupportBase):
    """Tells torch's partitioner which nodes may join a native part."""

    def __init__(self, verdicts: Mapping[fx.Node, Verdict]) -> None:
        self._verdicts = verdicts

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        if node.op == "call_function" and node.target is operator.getitem:
            node = node.args[0]  # type: ignore[assignment]
        verdict = self._verdicts.get(node)
        return verdict is not None and verdict.kind in ("native", "linalg")


def partition(
    whole: Capture, verdicts: Mapping[fx.Node, Verdict]
) -> tuple[Capture, dict[str, Capture]]:
    """Return a copy of the graph whose native nodes are in modules of their own, and these by name.

    The copy calls the modules as `call_module`; its other nodes are for torch.
    """
    mixed, twins = _copy(whole)
    native = _Native({twins[node]: verdict for node, verdict in verdicts.items()})
    partitioner = CapabilityBasedPartitioner(
        mixed.module, native, allows_single_node_partition=True
    )
    proposed = [p for p in partitioner.propose_partitions() if _computes(p.nodes)]
    by_name = {node.name: source for node, source in mixed.source_of.items()}
    fused = partitioner.fuse_partitions(proposed, prefix="native_")
    # Fusing sorts the graph, which makes its nodes anew under their names.
    mixed.source_of.clear()
    mixed.source_of.update({n: by_name[n.name] for n in fused.graph.nodes if n.op == "placeholder"})
    parts = {}
    for node in fused.graph.nodes:
        if node.op == "call_module":
            inner = fused.get_submodule(str(node.target))
            assert isinstance(inner, fx.GraphModule)
            parts[str(node.target)] = _part(inner, node, mixed)
            # What a part packs it has: the call need not keep a second copy alive.
            node.args = tuple(None if _is_weight(a, mixed) else a for a in node.args)
        elif node.target in _STRIDED_VIEWS:
            # Native results are row-major: the strides that torch traced the view with are gone.
            node.target = torch.ops.aten.reshape.default
    for node in [n for n in mixed.source_of if not n.users]:
        fused.graph.erase_node(node)
        del mixed.source_of[node]
    fused.recompile()
    return mixed, parts


def _copy(whole: Capture) -> tuple[Capture, dict[fx.Node, fx.Node]]:
    """Return a copy with a graph of its own, and each node's twin there."""
    module, twins = copy_graph(whole.module)
    sources = {twins[node]: source for node, source in whole.source_of.items()}
    return dataclasses.replace(whole, module=module, source_of=sources), twins


def _computes(nodes: Mapping[fx.Node, Any]) -> bool:
    """Say whether a part makes a tensor: integers alone are cheaper in Python."""
    return any(isinstance(v, torch.Tensor) for n in nodes for v in _values(n))


def _values(node: fx.Node) -> list[Any]:
    value = node.meta.get("val")
    return list(value) if isinstance(value, list | tuple) else [value]


def _part(module: fx.GraphModule, call: fx.Node, whole: Capture) -> Capture:
    sources: dict[fx.Node, Source | None] = {}
    inner = [n for n in module.graph.nodes if n.op == "placeholder"]
    for index, (placeholder, operand) in enumerate(zip(inner, call.args, strict=True)):
        is_weight = _is_weight(operand, whole)
        sources[placeholder] = (
            whole.source_of[operand]  # type: ignore[index]
            if is_weight
            else Source("argument", index=index)
        )
    output = next(n for n in module.graph.nodes if n.op == "output")
    results = output.args[0]
    results = list(results) if isinstance(results, list | tuple) else [results]
    return capture(module, sources, results, [], whole.weights, whole.symbols)


def _is_weight(operand: Any, whole: Capture) -> bool:
    source = whole.source_of.get(operand)
    return source is not None and source.kind == "weight"

"""Splits a graph into native parts and the ops between them that torch runs itself."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from metadef.diagnostics import UnsupportedOpError

from .capture import Capture, Source, capture
from .support import Verdict


class MetadefWarning(UserWarning):
    """Something works, but not the way one would hope."""


def report_fallbacks(verdicts: Mapping[fx.Node, Verdict], fallback: str) -> list[Verdict]:
    """Return the ops that torch runs, with one warning for all.

    Raises:
        UnsupportedOpError: there are such ops and `fallback` is "error".
    """
    eager = [verdict for verdict in verdicts.values() if verdict.kind == "eager"]
    if not eager:
        return []
    distinct = list(dict.fromkeys(eager))
    first, *others = distinct
    what = f"'{first.op}'{_from(first)}: {first.reason}"
    if fallback == "error":
        raise UnsupportedOpError(
            f"op {what}{_more(others)}; fallback='eager' lets torch run such ops"
        )
    listed = "; ".join(f"'{v.op}'{_from(v)}: {v.reason}" for v in distinct[:5])
    more = f"; and {len(distinct) - 5} more, see .report()" if len(distinct) > 5 else ""
    warnings.warn(f"torch runs {len(eager)} op(s) in eager mode: {listed}{more}", MetadefWarning, 4)
    return eager


def _from(verdict: Verdict) -> str:
    return f" from {verdict.line}" if verdict.line else ""


def _more(others: list[Verdict]) -> str:
    return f", and {len(others)} other(s)" if others else ""


class _Native(OperatorSupportBase):  # type: ignore[misc]
    """Tells torch's partitioner which nodes may join a native part."""

    def __init__(self, verdicts: Mapping[fx.Node, Verdict]) -> None:
        self._verdicts = verdicts

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        if node.op == "call_function" and node.target is operator.getitem:
            node = node.args[0]  # type: ignore[assignment]
        verdict = self._verdicts.get(node)
        return verdict is not None and verdict.kind != "eager"


def partition(whole: Capture, verdicts: Mapping[fx.Node, Verdict]) -> dict[str, Capture]:
    """Move the native nodes of a graph into modules of their own; return each by its name.

    The graph's module calls them as `call_module`; its other nodes are for torch.
    """
    partitioner = CapabilityBasedPartitioner(
        whole.module, _Native(verdicts), allows_single_node_partition=True
    )
    proposed = [p for p in partitioner.propose_partitions() if _computes(p.nodes)]
    fused = partitioner.fuse_partitions(proposed, prefix="native_")
    parts = {}
    for node in fused.graph.nodes:
        if node.op == "call_module":
            parts[str(node.target)] = _part(fused.get_submodule(str(node.target)), node, whole)
    fused.recompile()
    return parts


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
        outer = whole.source_of.get(operand)  # type: ignore[arg-type]
        is_weight = outer is not None and outer.kind == "weight"
        sources[placeholder] = outer if is_weight else Source("argument", index=index)
    output = next(n for n in module.graph.nodes if n.op == "output")
    results = output.args[0]
    results = list(results) if isinstance(results, list | tuple) else [results]
    return capture(module, sources, results, [], whole.weights, whole.symbols)

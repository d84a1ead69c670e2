"""Sizes that torch.export promises but never traced: 0 and 1, which are special to torch.

It traces for sizes of at least 2. Whether the graph is right for a smaller one is asked when a call
has it, once: the graph runs on tensors without data, and every shape has to be the traced one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode, ShapeEnv
from torch.utils import _pytree as pytree

from .node_names import line_of, op_name
from .symbols import Symbols, UnsupportedExpressionError

#: the shape of a tensor, the value of an integer; None for what is neither, or not known
_Size = tuple[int, ...] | int | None


class UntracedSizes:
    """Says whether a graph is right for values of its symbols."""

    def __init__(self, module: fx.GraphModule, symbols: Symbols) -> None:
        self._module = module
        self._symbols = symbols
        self._traced_min = {name: known.traced_min for name, known in symbols.ranges().items()}
        self._answers: dict[tuple[tuple[str, int], ...], str] = {}

    def why_not(self, values: Mapping[str, int]) -> tuple[str, str] | None:
        """Return a symbol whose value the graph is wrong for and the reason, or None."""
        small = tuple((s, n) for s, n in values.items() if n < self._traced_min[s])
        if not small:
            return None
        if small not in self._answers:
            with _without_data():
                self._answers[small] = self._difference(values)
        return (small[0][0], self._answers[small]) if self._answers[small] else None

    def _difference(self, values: Mapping[str, int]) -> str:
        """Return what torch refuses, or which shape is not the traced one, or ''."""
        results: dict[fx.Node, Any] = {}
        for node in self._module.graph.nodes:
            if node.op == "output":
                break
            traced = self._sizes(node.meta.get("val"), values)
            try:
                results[node] = self._run(node, traced, results)
            except GuardOnDataDependentSymNode:
                break  # sizes that depend on the data are checked when torch has the data
            except Exception as error:
                words = str(error).splitlines()[0] if str(error) else type(error).__name__
                return f"{_name(node)} says: {words}"
            got = self._sizes(results[node], values)
            for expected, size in zip(traced, got, strict=True):
                if None not in (expected, size) and expected != size:
                    return f"{_name(node)} gives {size} instead of {expected}"
        return ""

    def _run(self, node: fx.Node, traced: list[_Size], results: Mapping[fx.Node, Any]) -> Any:
        if node.op == "placeholder":
            [size] = traced
            return torch.empty(size, dtype=node.meta["val"].dtype) if type(size) is tuple else size
        if node.op == "get_attr":
            return getattr(self._module, str(node.target))
        assert callable(node.target)
        args, kwargs = fx.node.map_arg((node.args, node.kwargs), results.__getitem__)
        return node.target(*args, **kwargs)

    def _sizes(self, value: Any, values: Mapping[str, int]) -> list[_Size]:
        return [self._size(leaf, values) for leaf in pytree.tree_leaves(value)]

    def _size(self, leaf: Any, values: Mapping[str, int]) -> _Size:
        if isinstance(leaf, torch.Tensor):
            sizes = [self._size(size, values) for size in leaf.shape]
            return tuple(s for s in sizes if isinstance(s, int)) if None not in sizes else None
        if isinstance(leaf, torch.SymInt):
            try:
                dim = self._symbols.dim(leaf)
            except UnsupportedExpressionError:
                return None
            return dim.evaluate(values) if dim.symbols <= values.keys() else None
        return leaf if type(leaf) is int else None


@contextmanager
def _without_data() -> Iterator[None]:
    """Let torch's ops compute shapes only, and not log what they refuse."""
    log = logging.getLogger(FakeTensorMode.__module__)
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True), torch.no_grad():
            yield
    finally:
        log.setLevel(level)


def _name(node: fx.Node) -> str:
    line = line_of(node)
    return f"{op_name(node)} from {line}" if line else op_name(node)

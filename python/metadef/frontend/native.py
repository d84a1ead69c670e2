"""Runs a compiled graph: native code for all of it, or native parts with eager ops between them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from torch import fx

from metadef.profiling.spans import Span
from metadef.runtime.program import Stamps

from .bindings import Mutation, Output, Source
from .node_names import line_of, op_name
from .symbols import SymbolBinder
from .weights import WeightStore

if TYPE_CHECKING:
    from .capture import Capture


class Program(Protocol):
    """What the runtime builds of a graph: dense tensors in, fresh tensors out."""

    def __call__(
        self, inputs: Sequence[torch.Tensor], symbols: Mapping[str, int]
    ) -> list[torch.Tensor]: ...

    def timed(
        self, inputs: Sequence[torch.Tensor], symbols: Mapping[str, int]
    ) -> tuple[list[torch.Tensor], Stamps]: ...


class Graph(Protocol):
    """A graph ready to run: the flat leaves of a call in, the graph's values out."""

    def __call__(self, leaves: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]: ...

    def timed(
        self, leaves: Sequence[Any], symbols: Mapping[str, int]
    ) -> tuple[list[Any], list[Span]]: ...


class NativeGraph:
    """A whole graph as one native program: takes the flat leaves of a call, gives its values."""

    def __init__(
        self,
        program: Program,
        inputs: Sequence[Source],
        copies: Sequence[int],
        weights: WeightStore,
    ) -> None:
        """`inputs` are the program's; the values `copies` share memory that torch's do not."""
        self._program = program
        self.inputs = tuple(inputs)
        self.copies = tuple(copies)
        self._pick = _picker(self.inputs, weights, dense)

    @classmethod
    def of(cls, capture: Capture, program: Program, shared: Collection[int] = ()) -> NativeGraph:
        """Return a captured graph run by its program; `shared`: see `_is_view`."""
        nodes = capture.module.graph.output_node().args[0]
        assert isinstance(nodes, tuple)
        inputs = [
            source
            for node, source in capture.bindings()
            if source.kind != "weight" and isinstance(node.meta.get("val"), torch.Tensor)
        ]
        copies = [i for i in shared if not _is_view(nodes[i])]
        return cls(program, inputs, copies, capture.weights)

    def __call__(self, leaves: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
        values = self._program(self._pick(leaves), symbols)
        for index in self.copies:
            values[index] = values[index].clone()
        return values

    def timed(
        self, leaves: Sequence[Any], symbols: Mapping[str, int]
    ) -> tuple[list[Any], list[Span]]:
        """Return the graph's values and what the clock said."""
        values, stamps = self._program.timed(self._pick(leaves), symbols)
        return values, [Span(stamps, "main", symbols)]


class MixedGraph:
    """A graph whose modules are native and whose other nodes torch runs.

    Its inputs keep their strides, which ops of torch may read by.
    """

    def __init__(self, capture: Capture) -> None:
        self._module = capture.module
        self._module.recompile()
        sources = [source for _, source in capture.bindings()]
        self._pick = _picker(sources, capture.weights, lambda tensor: tensor)

    def __call__(self, leaves: Sequence[Any], symbols: Mapping[str, int]) -> list[Any]:
        with torch.no_grad():
            return list(self._module(*self._pick(leaves)))

    def timed(
        self, leaves: Sequence[Any], symbols: Mapping[str, int]
    ) -> tuple[list[Any], list[Span]]:
        """Return the graph's values and what the clock said, node by node."""
        clock = _Clock(self._module)
        with torch.no_grad():
            return list(clock.run(*self._pick(leaves))), clock.spans


class NativePart(torch.nn.Module):
    """One native part of a mixed graph: binds the symbols from the tensors it is given."""

    def __init__(self, capture: Capture, program: Program, shared: Collection[int] = ()) -> None:
        super().__init__()
        self._graph = NativeGraph.of(capture, program, shared)
        self._results = Results(capture.outputs, [], capture.weights)
        self._returns_tuple = len(capture.outputs) != 1
        bindings = [(n, s) for n, s in capture.bindings() if s.kind == "argument"]
        values = [(s.index, n.meta["val"]) for n, s in bindings]
        self._tensors = [i for i, v in values if isinstance(v, torch.Tensor)]
        self._sizes = [i for i, v in values if isinstance(v, torch.SymInt)]
        dims = [
            tuple(capture.symbols.dim(size) for size in value.shape)
            for _, value in values
            if isinstance(value, torch.Tensor)
        ]
        dims += [(capture.symbols.dim(v),) for _, v in values if isinstance(v, torch.SymInt)]
        self._binder = SymbolBinder(dims)

    def forward(self, *args: Any) -> Any:
        leaves, symbols = self._bind(args)
        return self._collect(self._graph(leaves, symbols), args, symbols)

    def timed(self, args: Sequence[Any]) -> tuple[Any, list[Span]]:
        """Return what `forward` does, and what the clock said."""
        leaves, symbols = self._bind(args)
        values, spans = self._graph.timed(leaves, symbols)
        return self._collect(values, args, symbols), spans

    def _collect(self, values: list[Any], args: Sequence[Any], symbols: Mapping[str, int]) -> Any:
        results = self._results.collect(values, args, symbols)
        return tuple(results) if self._returns_tuple else results[0]

    def _bind(self, args: Sequence[Any]) -> tuple[list[Any], dict[str, int]]:
        leaves = list(args)
        for index in self._tensors:
            leaves[index] = dense(leaves[index])
        symbols: dict[str, int] = {}
        if self._binder.steps:
            shapes: list[Sequence[int]] = [leaves[i].shape for i in self._tensors]
            shapes += [(leaves[i],) for i in self._sizes]
            symbols = self._binder.bind(shapes)
        return leaves, symbols


class _Clock(fx.Interpreter):
    """Runs a mixed graph and keeps what the clock said of its native parts and torch's ops."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.spans: list[Span] = []

    def run_node(self, n: fx.Node) -> Any:
        self._node = n
        return super().run_node(n)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(target, torch._ops.OperatorBase):
            return super().call_function(target, args, kwargs)
        start = time.monotonic_ns()
        result = super().call_function(target, args, kwargs)
        end = time.monotonic_ns()
        stamps = np.array([[start, end, end]], np.int64)
        self.spans.append(Span(stamps, op=op_name(self._node), line=line_of(self._node)))
        return result

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        part = self.fetch_attr(target)
        if not isinstance(part, NativePart):
            return super().call_module(target, args, kwargs)
        result, spans = part.timed(args)
        self.spans += [replace(span, part=target) for span in spans]
        return result


def _is_view(node: Any) -> bool:
    """Say whether torch, too, gives a view of an input; a fresh tensor must not share memory.

    A program's values may share memory of an input or a weight in any case.
    """
    while node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
        if not any(r.alias_info is not None for r in node.target._schema.returns):
            return False
        node = node.args[0]
    return bool(node.op == "placeholder")


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor as native code reads it: row-major, no lazy bits, no autograd."""
    if tensor.requires_grad:
        tensor = tensor.detach()
    if not tensor.is_contiguous() or tensor.is_neg() or tensor.is_conj():
        tensor = tensor.resolve_neg().resolve_conj().contiguous()
    return tensor


class Results:
    """Makes the leaves of a model's result from the values of its graph, and writes mutations.

    Of the weights it keeps those alone that are returned or written to.
    """

    def __init__(
        self, outputs: Sequence[Output], mutations: Sequence[Mutation], weights: WeightStore
    ) -> None:
        self._outputs = list(outputs)
        self._mutations = list(mutations)
        named = [o.name for o in (*outputs, *(m.value for m in mutations)) if o.kind == "weight"]
        named += [m.target.name for m in mutations if m.target.kind != "argument"]
        self._weights = {name: weights.source(name) for name in named}
        #: the graph's values are the leaves, as they are
        self.plain = not mutations and all(
            o.kind == "value" and o.index == i for i, o in enumerate(outputs)
        )

    def collect(
        self, values: list[Any], given: Sequence[Any], symbols: Mapping[str, int]
    ) -> list[Any]:
        """Return the leaves; `given` are the leaves of the call, as the caller passed them."""
        if self.plain:
            return values
        results = [self._leaf(output, values, given, symbols) for output in self._outputs]
        with torch.no_grad():
            for mutation in self._mutations:
                target = mutation.target
                tensor = (
                    given[target.index] if target.kind == "argument" else self._weights[target.name]
                )
                tensor.copy_(self._leaf(mutation.value, values, given, symbols))
        return results

    def _leaf(
        self, output: Output, values: list[Any], given: Sequence[Any], symbols: Mapping[str, int]
    ) -> Any:
        match output.kind:
            case "value":
                return values[output.index]
            case "argument":
                return given[output.index]
            case "weight":
                return self._weights[output.name]
            case "size":
                assert output.dim is not None
                return output.dim.evaluate(symbols)
            case "constant":
                return output.constant


def _picker(
    sources: Sequence[Source],
    weights: WeightStore,
    laid_out: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return the function from the call's leaves to the values of `sources`."""
    indices = [source.index for source in sources]
    if all(source.kind == "argument" for source in sources):
        return lambda leaves: [leaves[i] for i in indices]
    tensors = [None if s.kind == "argument" else weights.source(s.name) for s in sources]
    return lambda leaves: [
        leaves[i] if tensor is None else laid_out(tensor)
        for i, tensor in zip(indices, tensors, strict=True)
    ]

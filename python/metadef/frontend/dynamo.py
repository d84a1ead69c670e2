"""`torch.compile(model, backend="metadef")`: Dynamo finds the graphs, we compile them.

aot_autograd makes functional graphs of aten ops of what Dynamo gives: one for inference, or a
forward and a backward one for training. Each is compiled by the same path as an exported model;
parameters are inputs like the others, so that an optimizer may change them between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import fx
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily

from metadef.diagnostics import InputError, MetadefError
from metadef.plan.plan import ExecutionPlan

from .bindings import Source
from .capture import Capture, capture
from .compiler import compile_graph
from .decompositions import training_decompositions
from .native import NativeGraph, Results, dense
from .options import Options, default_options
from .plan_warnings import warn_of_fallbacks
from .report import Timeline
from .symbols import SymbolBinder, Symbols, shape_env_of
from .weights import WeightStore


def backend(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    threads: int | None = None,
    fallback: Literal["eager", "error"] = "eager",
    plan: ExecutionPlan | str | Path | None = None,
    options: dict[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile one of Dynamo's graphs; the entry point of `torch.compile(backend="metadef")`.

    `options` is the dict of `torch.compile(options=)`: `threads`, `fallback` and `plan`.
    """
    settings = {"threads": threads, "fallback": fallback, "plan": plan, **(options or {})}
    unknown = set(settings) - {"threads", "fallback", "plan"}
    if unknown:
        raise MetadefError(f"backend option '{unknown.pop()}': expected threads, fallback or plan")
    chosen = default_options(**settings)

    def compiler(graph: fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        with unset_fake_temporarily():  # constants of the graph are real
            return make_boxed_func(_AotGraph(graph, chosen))

    compiled = aot_autograd(
        fw_compiler=compiler,
        bw_compiler=compiler,
        inference_compiler=compiler,
        decompositions=training_decompositions(),
        keep_inference_input_mutations=False,
    )
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        result: Callable[..., Any] = compiled(module, example_inputs)
    return result


class _AotGraph:
    """One compiled aten graph: flat tensors and integers in, a flat list out."""

    def __init__(self, module: fx.GraphModule, options: Options) -> None:
        graph = _captured(module)
        inputs = [(s.index, n.meta["val"]) for n, s in graph.bindings() if s.kind == "argument"]
        self._tensors = [i for i, v in inputs if isinstance(v, torch.Tensor)]
        self._sizes = [i for i, v in inputs if isinstance(v, torch.SymInt)]
        symbols = graph.symbols
        values = dict(inputs)
        dims = [tuple(symbols.dim(n) for n in values[i].shape) for i in self._tensors]
        dims += [(symbols.dim(values[i]),) for i in self._sizes]
        self._binder = SymbolBinder(dims)
        self._results = Results(graph.outputs, graph.mutations, graph.weights)
        #: Dynamo compiles again for other strides, but for no other offset
        self._offsets = {i: v.offset for i, v in graph.layouts.items() if v.offset is not None}
        compiled = compile_graph(graph, options, Timeline())
        warn_of_fallbacks(compiled.applied(options))
        self._run = compiled.run
        self._dense = isinstance(self._run, NativeGraph)

    def __call__(self, *args: Any) -> list[Any]:
        leaves = list(args)
        for index, offset in self._offsets.items():
            _check_offset(leaves[index], offset)
        for index in self._tensors if self._dense else ():
            leaves[index] = dense(leaves[index])
        symbols: dict[str, int] = {}
        if self._binder.steps:
            shapes: list[Sequence[int]] = [leaves[i].shape for i in self._tensors]
            shapes += [(leaves[i],) for i in self._sizes]
            symbols = self._binder.bind(shapes)
        return self._results.collect(self._run(leaves, symbols), args, symbols)


def _check_offset(tensor: torch.Tensor, offset: int) -> None:
    if tensor.storage_offset() != offset:
        raise InputError(
            f"argument of shape {list(tensor.shape)}: expected storage offset {offset}, got "
            f"{tensor.storage_offset()}: the model reads its memory by as_strided from a fixed "
            "offset on; pass a copy that has the same layout, or call torch.compiler.reset()"
        )


def _captured(module: fx.GraphModule) -> Capture:
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    sources: dict[fx.Node, Source | None] = {
        node: Source("argument", index=i) for i, node in enumerate(nodes)
    }
    output = module.graph.output_node().args[0]
    results = list(output) if isinstance(output, list | tuple) else [output]
    symbols = Symbols(shape_env_of(n.meta.get("val") for n in nodes))
    return capture(module, sources, results, [], WeightStore(), symbols)

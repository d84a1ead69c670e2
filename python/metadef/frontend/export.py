"""From a module and example arguments to a captured graph, by way of torch.export."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.export._trace  # torch loads it, for most of a second, in the first export
from torch import fx
from torch.export.graph_signature import (
    ConstantArgument,
    InputKind,
    OutputKind,
    OutputSpec,
)
from torch.fx._lazy_graph_module import _use_lazy_graph_module
from torch.fx.proxy import _register_stack_trace_anchor
from torch.utils import _pytree as pytree

from metadef.diagnostics import MetadefError

from .bindings import Source
from .capture import Capture, capture, copy_graph
from .decompositions import decomposition_table, is_settled
from .exporting import exporting
from .interface import Interface, as_call
from .symbols import Symbols, shape_env_of
from .untraced_sizes import UntracedSizes
from .weights import WeightStore

_STATE_KINDS = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)


@dataclass(frozen=True)
class Exported:
    """A captured graph with the pytrees of its call: `in_spec` is that of `(args, kwargs)`."""

    graph: Capture
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    parameters: inspect.Signature | None
    #: for each leaf of the call: the placeholder's fake value, or the constant it must equal
    examples: tuple[Any, ...]

    @property
    def nodes(self) -> int:
        """The number of ops."""
        return sum(node.op == "call_function" for node in self.graph.module.graph.nodes)

    def interface(self) -> Interface:
        """Return what a call of the model is."""
        graph = self.graph
        return Interface(
            self.in_spec,
            self.out_spec,
            self.parameters,
            self.examples,
            graph.outputs,
            graph.mutations,
            graph.weights,
            graph.symbols,
            graph.layouts,
            UntracedSizes(graph.module, graph.symbols) if graph.symbols.ranges() else None,
        )


def export(
    model: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> Exported:
    """Export a model and decompose what we do not keep whole.

    Raises:
        MetadefError: torch.export refuses the model; its words and ours say why.
    """
    # Lazy: torch.export makes a graph five times over, and each time Python code that nobody runs.
    with exporting, _use_lazy_graph_module(True):
        return _export(model, args, kwargs, dynamic_shapes)


def _export(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any
) -> Exported:
    program, parameters, names = _program(model, args, kwargs, dynamic_shapes)
    if is_settled(program.graph_module.graph):
        return _exported(program, copy_graph(program.graph_module)[0], parameters, names)
    with torch.no_grad(), warnings.catch_warnings():
        # torch copies its own treespecs with `isinstance` checks that it deprecated
        warnings.filterwarnings("ignore", r"`isinstance\(treespec", FutureWarning)
        try:
            program = program.run_decompositions(decomposition_table())
        except Exception as error:
            raise MetadefError(f"cannot decompose the exported model: {_words(error)}") from error
    return _exported(program, program.graph_module, parameters, names)


def _program(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None, dynamic_shapes: Any
) -> tuple[torch.export.ExportedProgram, inspect.Signature | None, dict[str, str]]:
    """Return the exported program, the signature of forward, and the user's names of symbols."""
    if isinstance(model, torch.export.ExportedProgram):
        if dynamic_shapes is not None:
            raise MetadefError(
                "dynamic_shapes: an ExportedProgram has its dynamic dims already; give them to "
                "torch.export.export"
            )
        return model, None, {}
    if not isinstance(model, torch.nn.Module):
        if not callable(model):
            raise MetadefError(
                "model: expected a torch.nn.Module, an ExportedProgram or a function, got "
                f"{type(model).__name__}"
            )
        model = _Function(model)
    args, kwargs = _distinct(model, *as_call(args, kwargs))
    try:
        with torch.no_grad(), warnings.catch_warnings():
            # recurrent layers set their own list of weights; torch fears for tensors made there
            warnings.filterwarnings("ignore", "The tensor attributes? .* assigned during export")
            program = torch.export.export(
                model, args, kwargs, dynamic_shapes=dynamic_shapes, strict=False
            )
    except Exception as error:
        raise MetadefError(_refusal(model, error)) from error
    signature = inspect.signature(model.forward)
    names = _symbol_names(program, model, args, kwargs, dynamic_shapes)
    return program, signature, names


def _distinct(
    model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with a copy of each tensor that is there twice, or is the model's own.

    torch.export tells placeholders apart by their tensors: of two that are one tensor it uses only
    the last, and the program is wrong for others.
    """
    taken = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}

    def own(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        if id(leaf) in taken:
            return leaf.detach().clone()
        taken.add(id(leaf))
        return leaf

    distinct: tuple[tuple[Any, ...], dict[str, Any]] = pytree.tree_map(own, (args, kwargs))
    return distinct


class _Function(torch.nn.Module):
    """Makes a plain function a module, which is what torch.export takes."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        try:
            inspect.signature(function)
        except ValueError:  # a builtin, such as torch.relu
            self.forward = lambda *args: function(*args)
        else:
            self.forward = function
        # torch keeps the source lines of what is called `forward`, and of what is named here
        _register_stack_trace_anchor(function)
        self.name = getattr(function, "__name__", type(function).__name__)


def _refusal(model: torch.nn.Module, error: Exception) -> str:
    name = model.name if isinstance(model, _Function) else type(model).__name__
    words = _words(error)
    if "constraint" in words.lower():
        hint = "change dynamic_shapes so that every dim in its range takes the same path"
    elif "data-dependent" in words.lower():
        hint = "its control flow depends on values of tensors; use torch.cond, or torch.compile"
    elif isinstance(error, TypeError | AttributeError | ValueError | RuntimeError):
        hint = "call the model with the example arguments in eager mode first"
    else:
        hint = "torch.compile(model, backend='metadef') takes models that cannot be exported whole"
    return f"torch.export refuses {name}: {type(error).__name__}: {words}; {hint}"


def _words(error: Exception) -> str:
    """Return what torch says, without its advice on debugging torch."""
    text = str(error).split("The error above occurred")[0]
    text = text.replace('For more information, run with TORCH_LOGS="+dynamic".', "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " ".join(lines[:4])[:600] or type(error).__name__


def _symbol_names(
    program: torch.export.ExportedProgram,
    model: torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    dynamic_shapes: Any,
) -> dict[str, str]:
    """Return torch's symbol -> the name of the `torch.export.Dim` that the user gave for it."""
    if not dynamic_shapes:
        return {}
    from torch.export.dynamic_shapes import _combine_args, _tree_map_with_path

    leaves: list[Any] = []
    combined: Any = _combine_args(model, args, kwargs)
    if isinstance(dynamic_shapes, Mapping):
        dynamic_shapes = {name: dynamic_shapes.get(name) for name in combined}
    else:
        combined = type(dynamic_shapes)(combined.values())
    _tree_map_with_path(
        lambda _path, _leaf, spec=None: leaves.append(spec), combined, dynamic_shapes
    )
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    inputs = [s for s in program.graph_signature.input_specs if s.kind == InputKind.USER_INPUT]
    names: dict[str, str] = {}
    for spec, shapes in zip(inputs, leaves, strict=False):
        if isinstance(spec.arg, ConstantArgument) or not shapes:
            continue
        value = nodes[spec.arg.name].meta["val"]
        if not isinstance(value, torch.Tensor):
            continue
        axes = shapes.items() if isinstance(shapes, Mapping) else enumerate(shapes)
        for axis, dim in axes:
            size = value.shape[axis]
            if hasattr(dim, "__name__") and isinstance(size, torch.SymInt):
                expr = size.node.expr
                if expr.is_Symbol and dim.__name__ not in names.values():
                    names.setdefault(str(expr), dim.__name__)
    return names


def _exported(
    program: torch.export.ExportedProgram,
    module: fx.GraphModule,
    parameters: inspect.Signature | None,
    names: dict[str, str],
) -> Exported:
    signature = program.graph_signature
    written = {
        spec.target
        for spec in signature.output_specs
        if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.PARAMETER_MUTATION)
    }
    weights = WeightStore()
    nodes = [n for n in module.graph.nodes if n.op == "placeholder"]
    sources: dict[fx.Node, Source | None] = {}
    by_name: dict[str, Source] = {}
    examples: list[Any] = []
    for spec, node in zip(signature.input_specs, nodes, strict=True):
        if spec.kind == InputKind.USER_INPUT:
            source = Source("argument", index=len(examples))
            if isinstance(spec.arg, ConstantArgument):
                examples.append(spec.arg.value)
                sources[node] = None
                continue
            examples.append(node.meta["val"])
            by_name[spec.arg.name] = source
        elif spec.kind in _STATE_KINDS:
            assert spec.target is not None
            kind: Literal["state", "weight"] = "state" if spec.target in written else "weight"
            name = weights.add(spec.target, _tensor(program, spec.target))
            source = Source(kind, name=name)
            by_name[spec.target] = source
        else:
            raise MetadefError(
                f"input '{spec.arg.name}': expected a tensor or a number, got a {spec.kind.name}"
            )
        sources[node] = source
    results, mutations = _results(module.graph, signature.output_specs, by_name)
    values = (n.meta.get("val") for n in nodes)
    symbols = Symbols(shape_env_of(values), names, program.range_constraints)
    graph = capture(module, sources, results, mutations, weights, symbols)
    call = program.call_spec
    assert call.in_spec is not None and call.out_spec is not None
    return Exported(graph, call.in_spec, call.out_spec, parameters, tuple(examples))


def _results(
    graph: fx.Graph,
    specs: list[OutputSpec],
    by_name: dict[str, Source],
) -> tuple[list[Any], list[tuple[fx.Node, Source]]]:
    """Return what the model returns, and the nodes written back to inputs."""
    output: Any = graph.output_node().args[0]
    results: list[Any] = []
    mutations: list[tuple[fx.Node, Source]] = []
    for spec, node in zip(specs, output, strict=True):
        if spec.kind == OutputKind.USER_OUTPUT:
            results.append(spec.arg.value if isinstance(spec.arg, ConstantArgument) else node)
        elif spec.kind == OutputKind.TOKEN:
            raise MetadefError("effect tokens are not supported")
        else:
            assert spec.target is not None
            mutations.append((node, by_name[spec.target]))
    return results, mutations


def _tensor(program: torch.export.ExportedProgram, name: str) -> torch.Tensor:
    value = program.state_dict.get(name)
    if value is None:
        value = program.constants.get(name)
    if not isinstance(value, torch.Tensor):
        raise MetadefError(f"weight '{name}': expected a tensor, got {type(value).__name__}")
    return value

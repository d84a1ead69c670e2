"""A compiled model in the compile cache: its graph's key and, with a trace, how to call it.

It is kept under what the model looks like from outside, which other models may look like, too. The
graph's key tells what program to load while torch.export captures the model; a trace (see
`op_trace`) tells without torch.export whether the model is the kept one.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from metadef.codegen.version import compiler_version
from metadef.device.spec import DeviceSpec
from metadef.plan.plan import ExecutionPlan
from metadef.runtime.cache import Cache

from .argument_text import is_plain
from .bindings import Mutation, Output, Source
from .interface import Interface
from .native import NativeGraph
from .op_trace import OpTrace, module_state, replay
from .symbols import Symbols
from .weights import WeightStore

if TYPE_CHECKING:
    from .capture import Capture
    from .export import Exported

#: constants of a model that are not its parameters or buffers are kept with it up to this size
_MOST_CONSTANT_BYTES = 1 << 20


@dataclass(frozen=True)
class Traced:
    """A model that is told by a trace: its weights by name, and what its interface consists of."""

    trace: OpTrace
    weights: tuple[str, ...]
    #: the weights that the module does not have
    constants: Mapping[str, torch.Tensor]
    outputs: tuple[Output, ...]
    mutations: tuple[Mutation, ...]
    inputs: tuple[Source, ...]
    copies: tuple[int, ...]
    #: ops of the exported graph
    nodes: int

    def interface(self, module: torch.nn.Module, args: Any, kwargs: Any) -> Interface | None:
        """Return how to call the module, or None if it does not do what the trace says."""
        out_spec = replay(self.trace, module, args, kwargs)
        if out_spec is None:
            return None
        tensors = {**dict(module_state(module)), **self.constants}
        weights = WeightStore()
        for name in self.weights:
            if weights.add(name, tensors[name]) != name:
                return None  # two tensors of the module share memory that did not
        examples, in_spec = pytree.tree_flatten((args, kwargs))
        return Interface(
            in_spec,
            out_spec,
            inspect.signature(module.forward),
            tuple(examples),
            self.outputs,
            self.mutations,
            weights,
            Symbols(),
        )


@dataclass(frozen=True)
class KeptModel:
    """The key of the graph that a model became, and what tells the model without torch.export."""

    graph: str
    traced: Traced | None

    def weights(self, module: torch.nn.Module) -> dict[str, torch.Tensor]:
        """Return the tensors that the program of the graph takes if `module` is the kept model."""
        constants = self.traced.constants if self.traced is not None else {}
        return {**dict(module_state(module)), **constants}


def looks_key(
    module: torch.nn.Module,
    args: Any,
    kwargs: Any,
    dynamic_shapes: Any,
    device: DeviceSpec,
    plan: ExecutionPlan | None = None,
    error_limit: float | None = None,
) -> str:
    """Return a key of a module's and its arguments' looks, a device, a plan, a limit of errors."""
    lines = [f"{type(module).__module__}.{type(module).__qualname__}", repr(dynamic_shapes)]
    lines += [f"{name} {_looks(tensor)}" for name, tensor in module_state(module)]
    lines += [_looks(leaf) for leaf in pytree.tree_leaves((args, kwargs))]
    lines += [] if plan is None else [plan.digest]
    lines += [] if error_limit is None else [f"within {error_limit!r}"]
    content = "\n".join(["looks", compiler_version(), torch.__version__, repr(device), *lines])
    return hashlib.sha256(content.encode()).hexdigest()


def _looks(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return repr(leaf) if isinstance(leaf, bool | int | float | str) else type(leaf).__name__


def find_model(cache: Cache, looks: str | None) -> KeptModel | None:
    """Return what is kept of a model that looks like this."""
    content = cache.get(looks) if looks is not None else None
    if content is None:
        return None
    found = json.loads(zlib.decompress(content))
    return KeptModel(found["graph"], _read(found["traced"]) if found["traced"] else None)


def keep_model(cache: Cache, looks: str, model: KeptModel) -> None:
    """Keep a model for the next time that one looks like this."""
    traced = _written(model.traced) if model.traced is not None else None
    content = json.dumps({"graph": model.graph, "traced": traced})
    cache.put(looks, zlib.compress(content.encode(), level=1))


def record_ops(module: Any, args: Any, kwargs: Any, exported: Exported) -> OpTrace | None:
    """Return the trace of a model that was exported; None where a trace cannot tell it.

    That is where a size may vary, where memory layouts matter, and where a constant that is not in
    the module is large.
    """
    graph = exported.graph
    _, in_spec = pytree.tree_flatten((args, kwargs))
    if graph.symbols.ranges() or graph.layouts or in_spec != exported.in_spec:
        return None
    if sum(t.nbytes for t in _constants(module, graph).values()) > _MOST_CONSTANT_BYTES:
        return None
    if not all(o.dim is None and _is_json(o.constant) for o in graph.outputs):
        return None
    from .op_recording import record  # torch.export's own, like `exported`

    return record(module, args, kwargs)


def trace_model(
    module: Any, exported: Exported, run: NativeGraph, trace: OpTrace | None
) -> Traced | None:
    """Return what tells a model that was exported by its trace; None without one, and where a
    constant that is not in the module is written to or returned."""
    if trace is None:
        return None
    graph = exported.graph
    constants = _constants(module, graph)
    used = {s.name for s in run.inputs if s.kind == "state"}
    used |= {o.name for o in (*graph.outputs, *(m.value for m in graph.mutations))}
    used |= {m.target.name for m in graph.mutations}
    if used & constants.keys():
        return None
    return Traced(
        trace,
        tuple(graph.weights),
        constants,
        tuple(graph.outputs),
        tuple(graph.mutations),
        run.inputs,
        run.copies,
        exported.nodes,
    )


def _constants(module: torch.nn.Module, graph: Capture) -> dict[str, torch.Tensor]:
    """Return the weights of the graph that the module does not have."""
    state = dict(module_state(module))
    return {name: graph.weights.source(name) for name in graph.weights if name not in state}


def _is_json(value: Any) -> bool:
    return is_plain(value) and (value is None or isinstance(value, bool | int | float | str))


def _written(traced: Traced) -> dict[str, Any]:
    return {
        "trace": asdict(traced.trace),
        "weights": traced.weights,
        "constants": {name: _tensor_data(t) for name, t in traced.constants.items()},
        "outputs": [asdict(output) for output in traced.outputs],
        "mutations": [asdict(mutation) for mutation in traced.mutations],
        "inputs": [asdict(source) for source in traced.inputs],
        "copies": traced.copies,
        "nodes": traced.nodes,
    }


def _read(found: Mapping[str, Any]) -> Traced:
    trace = found["trace"]
    return Traced(
        OpTrace(
            tuple(trace["inputs"]),
            tuple((line, result) for line, result in trace["ops"]),
            trace["returns"],
        ),
        tuple(found["weights"]),
        {name: _tensor(data) for name, data in found["constants"].items()},
        tuple(Output(**output) for output in found["outputs"]),
        tuple(
            Mutation(Output(**mutation["value"]), Source(**mutation["target"]))
            for mutation in found["mutations"]
        ),
        tuple(Source(**source) for source in found["inputs"]),
        tuple(found["copies"]),
        found["nodes"],
    )


def _tensor_data(tensor: torch.Tensor) -> dict[str, Any]:
    data = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return {
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "data": base64.b64encode(data).decode(),
    }


def _tensor(found: Mapping[str, Any]) -> torch.Tensor:
    data = bytearray(base64.b64decode(found["data"]))
    dtype: torch.dtype = getattr(torch, found["dtype"])
    if not data:
        return torch.empty(found["shape"], dtype=dtype)
    return torch.frombuffer(data, dtype=dtype).reshape(found["shape"])

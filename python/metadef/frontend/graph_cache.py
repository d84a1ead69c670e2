"""What the front passes made of a graph, kept in the compile cache under the graph's content.

A second compilation of the same graph starts from its planned back graph: nothing is imported and
no front pass runs. Weights take part by name, dims and dtype: no front pass reads their data.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from metadef.codegen.version import compiler_version
from metadef.device.spec import DeviceSpec
from metadef.plan.decision import Decision
from metadef.plan.plan import ExecutionPlan
from metadef.runtime.back_graph import Plan
from metadef.runtime.back_graph_data import plan_from_data, plan_to_data
from metadef.runtime.cache import Cache

from .argument_text import UnknownArgumentError, argument_text, is_plain
from .node_names import source_line
from .symbols import Symbols, UnsupportedExpressionError

if TYPE_CHECKING:
    from .capture import Capture

#: modules whose functions are what their names say
_LIBRARIES = ("_operator", "math", "torch")
#: what an entry of the cache starts with: the bytes of all but the texts
_HEAD = struct.Struct("<Q")


@dataclass(frozen=True)
class Front:
    """The plan of a graph's program, and the nodes after each stage that led there.

    `kernels` has the names of the plan's kernels with the keys that they are cached under. With an
    execution plan there are the `decisions` that came of it, and the graph's `model_key`.
    """

    plan: Plan
    nodes: tuple[tuple[str, int], ...]
    #: the torch dialect of the graph and its planned back graph: for those who ask, so compressed
    texts: bytes
    kernels: dict[str, str] = field(default_factory=dict)
    decisions: tuple[Decision, ...] = ()
    model_key: str = ""

    @property
    def source(self) -> str:
        """The graph in the torch dialect."""
        return self._texts[0]

    @property
    def back(self) -> str:
        """The planned back graph."""
        return self._texts[1]

    @property
    def _texts(self) -> list[str]:
        found: list[str] = json.loads(zlib.decompress(self.texts))
        return found


def compress_texts(source: str, back: str) -> bytes:
    """Return the `texts` of a front."""
    return zlib.compress(json.dumps([source, back]).encode(), level=1)


def graph_key(
    capture: Capture,
    device: DeviceSpec,
    plan: ExecutionPlan | None = None,
    error_limit: float | None = None,
) -> str | None:
    """Return the key of a graph for a device, a plan and a limit of errors, or None where not all
    of it can be told by text."""
    try:
        lines = list(_lines(capture))
    except (UnknownArgumentError, UnsupportedExpressionError):
        return None
    versions = [compiler_version(), torch.__version__, importlib.metadata.version("torch-mlir")]
    planned = [] if plan is None else [plan.digest]
    planned += [] if error_limit is None else [f"within {error_limit!r}"]
    content = "\n".join(["front", *versions, repr(device), *planned, *lines])
    return hashlib.sha256(content.encode()).hexdigest()


def model_key(capture: Capture) -> str:
    """Return the key of a graph on whatever device, wherever its source is; '' where not all of it
    can be told by text."""
    try:
        lines = list(_lines(capture, with_places=False))
    except (UnknownArgumentError, UnsupportedExpressionError):
        return ""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def find_front(cache: Cache, key: str | None) -> Front | None:
    """Return what is kept under `key`."""
    content = cache.get(key) if key is not None else None
    if content is None:
        return None
    (size,) = _HEAD.unpack_from(content)
    texts = content[_HEAD.size + size :]
    found = json.loads(zlib.decompress(content[_HEAD.size : _HEAD.size + size]))
    nodes = tuple((name, count) for name, count in found["nodes"])
    decisions = tuple(map(Decision.from_data, found.get("decisions", ())))
    model = found.get("model", "")
    return Front(plan_from_data(found["plan"]), nodes, texts, found["kernels"], decisions, model)


def keep_front(cache: Cache, key: str | None, front: Front) -> None:
    """Keep a front under `key`."""
    if key is not None:
        data: dict[str, Any] = {
            "plan": plan_to_data(front.plan),
            "nodes": front.nodes,
            "kernels": front.kernels,
        }
        if front.model_key:
            decisions = [decision.to_data() for decision in front.decisions]
            data |= {"decisions": decisions, "model": front.model_key}
        head = zlib.compress(json.dumps(data).encode(), level=1)
        cache.put(key, _HEAD.pack(len(head)) + head + front.texts)


def _lines(capture: Capture, *, with_places: bool = True) -> Iterator[str]:
    """Yield a line for each node, with the source line that its location comes from; symbols."""
    for node in capture.module.graph.nodes:
        yield " ".join(
            (
                *(node.op, node.name, _target(node), _text(node.args), _text(node.kwargs)),
                _value(node.meta.get("val"), capture.symbols),
                *([repr(source_line(node))] if with_places else ()),
                repr(capture.source_of.get(node)),
            )
        )
    yield repr(sorted(capture.symbols.ranges().items()))


def _target(node: fx.Node) -> str:
    target = node.target
    if node.op in ("placeholder", "output"):
        return ""
    if node.op == "call_function":
        if isinstance(target, torch._ops.OpOverload):
            return str(target)
        module, name = str(target.__module__), getattr(target, "__qualname__", "<unknown>")
        if module in _LIBRARIES and "<" not in name:
            return f"{module}.{name}"
    raise UnknownArgumentError(f"{node.op} {target}")


def _text(argument: Any) -> str:
    return argument_text(argument, _node_text)


def _node_text(leaf: Any) -> str | None:
    return f"%{leaf.name}" if isinstance(leaf, fx.Node) else None


def _value(value: Any, symbols: Symbols) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}[{', '.join(str(symbols.dim(size)) for size in value.shape)}]"
    if isinstance(value, torch.SymInt):
        return str(symbols.dim(value))
    if isinstance(value, list | tuple):
        return f"({', '.join(_value(v, symbols) for v in value)})"
    if is_plain(value):
        return repr(value)
    raise UnknownArgumentError(f"value of type {type(value).__name__}")

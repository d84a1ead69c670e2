"""`as_strided` reads memory by strides; values in MLIR have none, and native results are row-major.

Where sizes are static it becomes an indexing of the tensor that owns the memory, by the strides
that this tensor had when the model was traced. Torch runs the others, on a tensor laid out as it
was then. Both are right only for arguments that lie in memory as the example arguments did:
`Layout` says how, and the signature of a compiled model checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch._prims_common import is_non_overlapping_and_dense_or_false
from torch._subclasses.fake_tensor import unset_fake_temporarily

from metadef.diagnostics import MetadefError
from metadef.symbolic import Dim

from .symbols import Symbols

if TYPE_CHECKING:
    from .bindings import Source

_READS = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_scatter.default)


@dataclass(frozen=True)
class Layout:
    """How an argument has to lie in memory: its strides, in elements, and its offset if it counts.

    The offset counts where the model gives `as_strided` one, which is from the storage's start.
    """

    strides: tuple[Dim, ...]
    offset: int | None = None


@dataclass(frozen=True)
class _Read:
    """An `as_strided` of `view`, whose memory is `owner`'s, with the offset that the model gave."""

    node: fx.Node
    view: fx.Node
    owner: fx.Node
    arguments: tuple[fx.Node, ...]
    offset: Any


def settle_strided_views(
    module: fx.GraphModule, sources: Mapping[fx.Node, Source], symbols: Symbols
) -> dict[int, Layout]:
    """Make each `as_strided` of a graph right for row-major tensors; return what it relies on.

    That is a layout for each argument, by its leaf, from which memory that is read by strides is
    computed, as the strides of an op's result follow from those of its operands.

    Raises:
        MetadefError: an offset is dynamic, or memory that torch would leave gaps in is read.
    """
    reads = [_read(node) for node in module.graph.nodes if node.target in _READS]
    if not reads:
        return {}
    _rewrite_as_indexing(module)
    left = [read for read in reads if not read.node._erased]
    for read in left:
        _restore_layout(read)
    layouts: dict[int, Layout] = {}
    for read in reads:
        for argument in read.arguments:
            source = sources.get(argument)
            if source is None or source.kind != "argument":
                continue
            counts = argument is read.owner and (
                read.offset is not None or (read in left and read.owner is not read.view)
            )
            layout = _layout(argument, symbols, counts)
            if source.index not in layouts or layout.offset is not None:
                layouts[source.index] = layout
    return layouts


def restrided(tensor: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """Return the tensor, or a copy, so that its dims from the widest stride on are `order`."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(tuple(order)).contiguous().permute(inverse)


def _rewrite_as_indexing(module: fx.GraphModule) -> None:
    """Say each `as_strided` as an indexing of its owner, where sizes allow that."""
    from torch_mlir.extras.fx_as_strided import rewrite_as_strided  # brings in MLIR

    with unset_fake_temporarily():
        try:
            rewrite_as_strided(module.graph)
        except ValueError:
            module.graph.eliminate_dead_code()
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.index.Tensor and not node.args[1]:
            # A view of a number; torch takes no indexing without an index.
            node.target = torch.ops.aten.expand.default
            node.args = (node.args[0], list(node.meta["val"].shape))


def _restore_layout(read: _Read) -> None:
    """Let a read that torch runs find the memory of its owner as it was traced."""
    node, memory = read.node, read.view
    if node.target is _READS[0] and read.owner is not read.view:
        offset = read.view.meta["val"].storage_offset() if read.offset is None else read.offset
        if not isinstance(offset, int):
            raise MetadefError(
                f"{node.name}: its memory is a view with a dynamic offset, so that it cannot be "
                "said what it reads; give it a copy, made with .clone()"
            )
        memory = read.owner
        node.args = (memory, *node.args[1:3], offset)
    if is_non_overlapping_and_dense_or_false(memory.meta["val"]):
        _insert_restrided(node, memory)
    elif memory.op != "placeholder":
        raise MetadefError(
            f"{node.name}: its memory is a view with gaps, so that it cannot be said what it "
            "reads; give it a copy, made with .clone()"
        )


def _insert_restrided(node: fx.Node, read: fx.Node) -> None:
    strides = [_hint(stride) for stride in read.meta["val"].stride()]
    order = sorted(range(len(strides)), key=lambda dim: -strides[dim])
    with node.graph.inserting_before(node):
        laid_out = node.graph.call_function(restrided, (read, order))
    laid_out.meta.update(read.meta)
    node.replace_input_with(read, laid_out)


def _hint(stride: int | torch.SymInt) -> float:
    if isinstance(stride, int):
        return stride
    return float("inf") if stride.node.hint is None else stride.node.hint


def _layout(argument: fx.Node, symbols: Symbols, offset_counts: bool) -> Layout:
    value = argument.meta["val"]
    strides = tuple(symbols.dim(stride) for stride in value.stride())
    offset = value.storage_offset() if offset_counts else None
    return Layout(strides, offset if isinstance(offset, int) else None)


def _read(node: fx.Node) -> _Read:
    view: Any = node.args[0]
    owner = _owner(view)
    place = len(node.target._schema.arguments) - 1  # type: ignore[union-attr]
    offset = node.args[place] if len(node.args) > place else node.kwargs.get("storage_offset")
    return _Read(node, view, owner, tuple(_placeholders_behind(owner)), offset)


def _owner(node: Any) -> fx.Node:
    """Return the node whose result the memory of a view was made for."""
    storage = _storage(node)
    while True:
        viewed = [n for n in node.all_input_nodes if _storage(n) == storage]
        if not viewed:
            return node
        node = viewed[0]


def _storage(node: fx.Node) -> int | None:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def _placeholders_behind(node: fx.Node) -> Iterator[fx.Node]:
    """Yield the placeholders of tensors that a node is computed from."""
    seen, waiting = {node}, [node]
    while waiting:
        current = waiting.pop()
        if current.op == "placeholder" and isinstance(current.meta.get("val"), torch.Tensor):
            yield current
        for operand in current.all_input_nodes:
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)

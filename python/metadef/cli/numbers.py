"""How far the numbers of a compiled model are from eager's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from metadef.cli.models import Model
from metadef.measure.accuracy import relative_error

#: what max|ours - eager| / max|eager| may be, by dtype; integers and bools must be equal
TOLERANCES = {
    torch.float64: 1e-10,
    torch.float32: 1e-4,
    torch.float16: 1e-2,
    torch.bfloat16: 5e-2,
}


@dataclass(frozen=True)
class Difference:
    """One leaf of a result; `error` is max|ours - eager| / max|eager|, or infinite."""

    output: str
    about: str
    error: float
    tolerance: float

    @property
    def right(self) -> bool:
        return self.error <= self.tolerance


def results(model: Model, compiled: Callable[..., Any]) -> tuple[Any, Any]:
    """Return what the compiled model gives, and what eager gives, for the same call.

    Each runs on copies of the arguments, from the same buffers and the same random seed.
    """
    eager = model.eager
    buffers = dict(eager.named_buffers()) if isinstance(eager, torch.nn.Module) else {}
    before = {name: buffer.clone() for name, buffer in buffers.items()}
    found = []
    with torch.no_grad():
        for function in (eager, compiled):
            torch.manual_seed(0)
            result = function(*copy.deepcopy(model.args), **copy.deepcopy(model.kwargs))
            # a copy: the result may be a view of a buffer
            found.append(pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, result))
            for name, buffer in buffers.items():
                buffer.copy_(before[name])
    return found[1], found[0]


def differences(
    ours: Any, eager: Any, tolerance: float | None = None, limit: float | None = None
) -> list[Difference]:
    """Compare two results leaf by leaf; `tolerance` replaces that of each floating dtype, and a
    `limit` of errors that was asked for widens it."""
    ours_leaves, ours_tree = pytree.tree_flatten(ours)
    leaves, tree = pytree.tree_flatten_with_path(eager)
    if ours_tree != tree:
        return [Difference("result", f"expected {tree}, got {ours_tree}", float("inf"), 0.0)]
    return [
        _difference(pytree.keystr(path) or "result", a, b, tolerance, limit or 0.0)
        for a, (path, b) in zip(ours_leaves, leaves, strict=True)
    ]


def worst(found: list[Difference]) -> Difference:
    """Return the difference that most exceeds its tolerance, or comes nearest to it."""
    return max(found, key=lambda d: (not d.right, d.error), default=Difference("", "", 0.0, 0.0))


def _difference(output: str, a: Any, b: Any, tolerance: float | None, limit: float) -> Difference:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return Difference(output, type(b).__name__, 0.0 if a == b else float("inf"), 0.0)
    about = f"{str(b.dtype).removeprefix('torch.')} {list(b.shape)}"
    if a.dtype != b.dtype or a.shape != b.shape:
        got = f"{str(a.dtype).removeprefix('torch.')} {list(a.shape)}"
        return Difference(output, f"expected {about}, got {got}", float("inf"), 0.0)
    allowed = TOLERANCES.get(b.dtype, 0.0)
    if b.dtype.is_floating_point:
        allowed = max(allowed if tolerance is None else tolerance, limit)
    return Difference(output, about, relative_error(a, b), allowed)

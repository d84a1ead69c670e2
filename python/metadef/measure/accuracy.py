"""How far the numbers of one model are from another's, for the same call."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from metadef.diagnostics import MetadefError


def relative_error(a: torch.Tensor, b: torch.Tensor) -> float:
    """Return max|a - b| / max|b| over finite numbers; NaN and infinity must be where b has them."""
    a, b = a.detach(), b.detach()
    if not b.dtype.is_floating_point:
        return 0.0 if torch.equal(a, b) else float("inf")
    a, b = a.double(), b.double()
    finite = torch.isfinite(b)
    if not torch.allclose(a[~finite], b[~finite], equal_nan=True):
        return float("inf")
    a, b = a[finite], b[finite]
    if not b.numel():
        return 0.0
    difference = float((a - b).abs().nan_to_num(nan=float("inf")).max())
    return difference / max(float(b.abs().max()), torch.finfo(torch.float32).tiny)


def output_error(
    model: Callable[..., Any],
    reference: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
) -> float:
    """Return the greatest `relative_error` of an output of `model` against that of `reference`.

    Each is called with copies of the arguments, from the same random seed. What is no tensor of
    floats, an index for one, must be equal, else the error is infinite.

    Raises:
        MetadefError: the outputs are not alike in structure, shape or dtype.
    """
    found = []
    with torch.no_grad():
        for function in (model, reference):
            torch.manual_seed(0)
            result = function(*copy.deepcopy(args), **copy.deepcopy(dict(kwargs or {})))
            found.append(pytree.tree_flatten(result))
    (ours, our_spec), (theirs, spec) = found
    if our_spec != spec:
        raise MetadefError(f"output_error: expected outputs as {spec}, got {our_spec}")
    return max((_error(a, b) for a, b in zip(ours, theirs, strict=True)), default=0.0)


def _error(a: Any, b: Any) -> float:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return 0.0 if a == b else float("inf")
    if a.shape != b.shape or a.dtype != b.dtype:
        raise MetadefError(
            f"output_error: expected an output of {b.dtype} {list(b.shape)}, "
            f"got {a.dtype} {list(a.shape)}"
        )
    return relative_error(a, b)

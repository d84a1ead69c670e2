"""Is a compiled model as accurate as eager? Both are compared with eager in double precision."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

#: our error may be this many times eager's own, plus `SLACK` of the largest value
FACTOR = 4.0
SLACK = 1e-7


def assert_as_accurate_as_eager(
    compiled: Callable[..., Any],
    module: Callable[..., Any],
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
) -> None:
    """Run compiled, eager and double-precision eager on copies of the arguments and compare.

    The error of a tensor is max|y - reference| / max|reference|; integers must agree exactly.
    """
    kwargs = kwargs or {}
    got, structure = run(compiled, args, kwargs)
    eager, expected_structure = run(module, args, kwargs)
    exact, _ = run(in_double(module), in_double(args), in_double(kwargs))
    assert structure == expected_structure
    for i, (ours, theirs, reference) in enumerate(zip(got, eager, exact, strict=True)):
        if not isinstance(theirs, Tensor):
            assert ours == theirs, f"output {i}"
            continue
        assert ours.dtype == theirs.dtype, f"output {i}"
        assert ours.shape == theirs.shape, f"output {i}"
        if not theirs.is_floating_point():
            assert torch.equal(ours, theirs), f"output {i}"
            continue
        error, own = relative_error(ours, reference), relative_error(theirs, reference)
        assert error <= FACTOR * own + SLACK, f"output {i}: error {error:.2e}, eager {own:.2e}"


def run(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[Any], pytree.TreeSpec]:
    """Call a function on copies of its arguments; return its result's leaves and their tree."""
    args, kwargs = copy.deepcopy((args, kwargs))
    with torch.no_grad():
        return pytree.tree_flatten(function(*args, **kwargs))


def in_double(value: Any) -> Any:
    """Return a module or arguments with floats in double precision, everything else as it is."""
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).double()
    if callable(value):
        return value
    return pytree.tree_map_only(Tensor, lambda t: t.double() if t.is_floating_point() else t, value)


def relative_error(got: Tensor, reference: Tensor) -> float:
    """Return max|got - reference| / max|reference|; NaNs and infinities must be the same ones."""
    reference = reference.double()
    ordinary = torch.isfinite(reference)
    torch.testing.assert_close(
        got.double()[~ordinary], reference[~ordinary], rtol=0, atol=0, equal_nan=True
    )
    got, reference = got.double()[ordinary], reference[ordinary]
    if not reference.numel():
        return 0.0
    largest = reference.abs().max().clamp(min=torch.finfo(torch.float32).tiny)
    return float((got - reference).abs().max() / largest)

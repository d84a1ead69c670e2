"""Sizes 0 and 1 of a dim that torch.export traced as at least 2.

Compared with eager in double precision; the tolerance is 1e-5 relative.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import metadef
from metadef.diagnostics import InputError

Model = Callable[..., Any]


def _compile(model: Model, shape: tuple[int, ...] = (4, 8), smallest: int | None = None) -> Any:
    batch = torch.export.Dim("B", min=smallest, max=64)
    return metadef.compile(
        model, (torch.ones(shape),), dynamic_shapes=({0: batch},), fallback="error"
    )


def _linear() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 4), nn.GELU(), nn.LayerNorm(4)).eval()


MODELS: dict[str, tuple[Model, tuple[int, ...]]] = {
    "relu": (nn.ReLU(), (8,)),
    "linear": (_linear(), (8,)),
    "sum": (lambda x: x.sum(0), (8,)),
    "mean of nothing is nan": (lambda x: x.mean(0), (8,)),
    "softmax": (lambda x: x.softmax(0), (8,)),
    "contraction over nothing": (lambda x: x.t() @ x, (8,)),
    "contraction of nothing": (lambda x: x @ x.t(), (8,)),
    "concat": (lambda x: torch.cat([x, x + 1]), (8,)),
    "scan": (lambda x: x.cumsum(0), (8,)),
    "sort": (lambda x: x.sort(0)[0], (8,)),
    "pad": (lambda x: F.pad(x, (0, 0, 1, 1)), (8,)),
    "roll": (lambda x: x.roll(3, 0), (8,)),
    "attention": (lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None]), (8,)),
    "gather": (lambda x: x.gather(0, (x > 9).long()), (8,)),
    "iota": (lambda x: torch.arange(x.shape[0])[:, None] + x, (8,)),
    "conv": (nn.Conv2d(2, 3, 3).eval(), (2, 5, 5)),
    "pool": (nn.MaxPool2d(2), (2, 5, 5)),
}


@pytest.mark.parametrize(("model", "rest"), MODELS.values(), ids=MODELS)
def test_sizes_0_1_and_many(model: Model, rest: tuple[int, ...]) -> None:
    compiled = _compile(model, (4, *rest))
    for size in (0, 1, 5):
        x = torch.rand(size, *rest)
        wide = model.double() if isinstance(model, nn.Module) else model
        want = wide(x.double()).float()
        if isinstance(model, nn.Module):
            model.float()
        assert torch.allclose(compiled(x), want, rtol=1e-5, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize(
    ("model", "size", "words"),
    [
        (lambda x: x.amax(0), 0, "aten.amax from .* says: reducing over zero-size dim"),
        (lambda x: x.argmax(0), 0, "aten.argmax from .* says: .*non-zero size"),
        (lambda x: x[1], 1, "aten.select.int from .* says: .*index 1 out of range"),
        (lambda x: x[:2], 1, r"aten.slice.Tensor from .* gives \(1, 8\) instead of \(2, 8\)"),
        (lambda x: x.topk(2, dim=0)[0], 1, "aten.topk from .* says: k not in range"),
        (lambda x: x.squeeze(0), 1, r"aten.squeeze.dim from .* gives \(8,\) instead of \(1, 8\)"),
    ],
    ids=["amax", "argmax", "select", "slice", "topk", "squeeze"],
)
def test_a_size_that_the_trace_is_wrong_for_is_refused(
    model: Model, size: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    compiled = _compile(model)
    expected = rf"^argument args\[0\]: dim 0: got {size}; the model was traced .*{words}"
    for _ in range(2):
        with pytest.raises(InputError, match=expected):
            compiled(torch.ones(size, 8))
    assert not [r for r in caplog.records if r.levelno >= logging.WARNING]
    x = torch.rand(5, 8)
    assert torch.equal(compiled(x), model(x))


@pytest.mark.parametrize(("smallest", "refused"), [(1, 0), (2, 1), (3, 2)])
def test_the_declared_range_holds(smallest: int, refused: int) -> None:
    compiled = _compile(nn.ReLU(), smallest=smallest)
    assert compiled(torch.ones(smallest, 8)).shape == (smallest, 8)
    with pytest.raises(InputError, match=f"expected B with B at least {smallest} and at most 64"):
        compiled(torch.ones(refused, 8))


def test_each_small_dim_is_judged_with_the_others() -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        return x @ y[:2]

    a, b = torch.export.Dim("A", max=64), torch.export.Dim("B", max=64)
    compiled = metadef.compile(
        model,
        (torch.ones(4, 2), torch.ones(3, 5)),
        dynamic_shapes=({0: a}, {0: b}),
    )
    assert compiled(torch.ones(0, 2), torch.ones(3, 5)).shape == (0, 5)
    with pytest.raises(InputError, match=r"args\[1\]: dim 0: got 1"):
        compiled(torch.ones(4, 2), torch.ones(1, 5))


def test_parts_of_a_graph_that_torch_runs_take_small_sizes_too() -> None:
    def model(x: Tensor) -> Tensor:
        return torch.linalg.eigvalsh(x @ x.mT) + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        compiled = metadef.compile(
            model, (torch.rand(4, 3, 3),), dynamic_shapes=({0: torch.export.Dim("B", max=64)},)
        )
    for size in (0, 1, 5):
        x = torch.rand(size, 3, 3)
        assert torch.allclose(compiled(x), model(x), atol=1e-5)


def test_sizes_that_depend_on_data_are_left_to_torch() -> None:
    def model(x: Tensor) -> Tensor:
        return x[x > 0].view(-1, 1) * 2

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        compiled = metadef.compile(
            model, (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("B", max=64)},)
        )
    x = torch.ones(1, 3)
    assert torch.equal(compiled(x), model(x))


def test_in_inference_mode() -> None:
    compiled = _compile(nn.ReLU())
    with torch.inference_mode():
        assert compiled(torch.ones(1, 8)).shape == (1, 8)

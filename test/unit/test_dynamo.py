"""`torch.compile(backend="metadef")`: inference, training, integers, graph breaks."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch
from torch import nn

from metadef.diagnostics import MetadefError
from metadef.frontend.dynamo import backend


@pytest.fixture(autouse=True)
def _fresh_dynamo() -> Iterator[None]:
    torch.manual_seed(0)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 4))


class Convolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.conv(x)).relu().mean((2, 3))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize(
    ("model", "shape", "dynamic"),
    [
        (_mlp(), (5, 8), False),
        (_mlp(), (5, 8), True),
        (Convolution(), (2, 3, 6, 6), False),
        (Attention(), (2, 3, 8), False),
    ],
    ids=["mlp", "mlp-dynamic", "conv-bn", "attention"],
)
def test_trains_like_eager(model: nn.Module, shape: Any, dynamic: bool) -> None:
    """Forward, input and parameter gradients in f32, against the same in double precision."""
    exact = copy.deepcopy(model).double()
    compiled = torch.compile(model, backend=backend, dynamic=dynamic)
    x = torch.randn(shape, requires_grad=True)
    x64 = x.detach().double().requires_grad_()
    y, y64 = compiled(x), exact(x64)
    y.square().sum().backward()
    y64.square().sum().backward()
    torch.testing.assert_close(y.double(), y64, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(x.grad.double(), x64.grad, rtol=1e-3, atol=1e-4)
    for ours, theirs in zip(model.parameters(), exact.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=1e-3, atol=1e-4)


def test_an_optimizer_s_steps_are_seen() -> None:
    model = nn.Linear(4, 4)
    compiled = torch.compile(model, backend=backend)
    x = torch.randn(2, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
    torch.testing.assert_close(compiled(x), model(x))


def test_integers_and_dynamic_sizes() -> None:
    def function(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int]:
        return x * n + x.shape[0], x.shape[0] * 2

    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows, n in ((3, 2), (5, 7)):
        x = torch.randn(rows, 2)
        got, expected = compiled(x, n), function(x, n)
        torch.testing.assert_close(got[0], expected[0])
        assert got[1] == expected[1]


def test_mutated_inputs_and_graph_breaks() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        x.add_(1)
        if y.sum() > 0:
            return y * 2
        return y - 1

    compiled = torch.compile(function, backend=backend)
    for start in (1.0, -1.0):
        x, twin = torch.full((3,), start), torch.full((3,), start)
        torch.testing.assert_close(compiled(x), function(twin))
        torch.testing.assert_close(x, twin)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(
        MetadefError, match="backend option 'speed': expected threads, fallback or plan"
    ):
        backend(torch.fx.symbolic_trace(nn.ReLU()), [torch.ones(1)], options={"speed": 11})


_INSTALLED = entry_points(group="torch_dynamo_backends", name="metadef")


@pytest.mark.skipif(not _INSTALLED, reason="metadef is on the path, not installed")
def test_is_found_by_name_without_importing_metadef() -> None:
    code = (
        "import torch; x = torch.ones(3); "
        "f = torch.compile(lambda x: x.relu() + 1, backend='metadef'); "
        "assert f(x).tolist() == [2, 2, 2]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)

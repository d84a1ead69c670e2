"""What other compilers were publicly reported to get wrong, with the right value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from accuracy import assert_as_accurate_as_eager
from torch import Tensor, nn
from torch.nn import functional as F

import metadef


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def check(function: Callable[..., Any], *args: Any, **options: Any) -> None:
    """Compile a function or module, with no fallback, and compare it with eager."""
    module = function if isinstance(function, nn.Module) else Call(function)
    compiled = metadef.compile(module, args, fallback="error", **options)
    assert_as_accurate_as_eager(compiled, module, args)


def check_dynamic(module: nn.Module, shapes: list[tuple[int, ...]]) -> None:
    """Compile for the first of `shapes` with two dynamic dims, and compare with eager for all."""
    dims = {0: torch.export.Dim("rows", min=2), 1: torch.export.Dim("columns", min=2)}
    args = (torch.randn(shapes[0]),)
    compiled = metadef.compile(module, args, dynamic_shapes=(dims,), fallback="error")
    for shape in shapes:
        assert_as_accurate_as_eager(compiled, module, (torch.randn(shape),))


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


def test_multihead_attention_with_batch_and_sequence_dynamic() -> None:
    check_dynamic(SelfAttention().eval(), [(2, 5, 32), (3, 9, 32), (7, 2, 32)])


class View(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, 64) * 2


def test_view_merges_dynamic_and_static_dims() -> None:
    check_dynamic(View(), [(3, 4, 8, 8), (5, 2, 8, 8)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.cumsum(x, 1),
        lambda x: torch.cumprod(x, 0),
        lambda x: torch.cumsum(x.flip(1), 1).flip(1),
        lambda x: torch.cumprod(x.flip(0), 0).flip(0),
        lambda x: torch.cumsum(x.masked_fill(x < 0, 0.0), 1),
        lambda x: torch.cumprod(torch.where(x > 1, x, 1.0), 1),
    ],
    ids=[
        "cumsum",
        "cumprod",
        "flipped cumsum",
        "flipped cumprod",
        "masked cumsum",
        "masked cumprod",
    ],
)
def test_scans(function: Callable[[Tensor], Tensor]) -> None:
    check(function, torch.randn(6, 37))


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_smooth_l1_loss(reduction: str) -> None:
    check(lambda x, y: F.smooth_l1_loss(x, y, reduction=reduction), *torch.randn(2, 13, 7) * 2)


def test_triplet_margin_loss() -> None:
    check(F.triplet_margin_loss, *torch.randn(3, 11, 16))


@pytest.mark.parametrize(
    "activation", [nn.ReLU, nn.GELU, nn.Tanh, nn.Sigmoid, nn.SiLU, nn.Hardswish, nn.LeakyReLU]
)
def test_convolution_activation_and_batch_norm_in_training_mode(
    activation: type[nn.Module],
) -> None:
    module = nn.Sequential(nn.Conv2d(3, 8, 3), activation(), nn.BatchNorm2d(8))
    check(module.train(), torch.randn(2, 3, 16, 16))


class LogSumExpOfSigmoid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(24, 40)

    def forward(self, x: Tensor) -> Tensor:
        return torch.logsumexp(torch.sigmoid(self.linear(x)), dim=1)


def test_logsumexp_of_sigmoid_of_linear() -> None:
    check(LogSumExpOfSigmoid(), torch.randn(5, 24))


def test_instance_norm() -> None:
    check(nn.InstanceNorm2d(64), torch.randn(2, 64, 32, 32))


def test_mse_loss_is_a_scalar() -> None:
    check(F.mse_loss, *torch.randn(2, 9, 33))


def test_kl_divergence_is_a_scalar() -> None:
    x, y = torch.randn(2, 9, 33)
    check(lambda x, y: F.kl_div(x, y, reduction="batchmean"), x.log_softmax(1), y.softmax(1))


def test_hinge_embedding_loss_is_a_scalar() -> None:
    check(F.hinge_embedding_loss, torch.randn(9, 33), torch.randn(9, 33).sign())


@pytest.mark.parametrize("triangle", [torch.triu, torch.tril])
@pytest.mark.parametrize("diagonal", [-3, 0, 2])
def test_triangle_of_a_product(triangle: Callable[..., Tensor], diagonal: int) -> None:
    check(lambda x, y: triangle(x @ y, diagonal), torch.randn(17, 9), torch.randn(9, 23))


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8])
def test_min_and_argmin_of_18_bytes(dtype: torch.dtype) -> None:
    info = torch.iinfo(dtype)
    x = torch.randint(info.min, info.max + 1, (18,), dtype=dtype)
    check(lambda x: (x.min(), x.argmin()), x)


def test_negative_float_to_uint8_is_eagers_value() -> None:
    check(lambda x: x.to(torch.uint8), torch.tensor([-2.18, 3.99, 254.5, -0.5]))


def test_uint8_sum_wraps_before_it_is_widened() -> None:
    x = torch.tensor([200, 255, 3], dtype=torch.uint8)
    check(lambda x, y: ((x + y).to(torch.int32), (x + y).float()), x, x.flip(0))


def test_mean_of_many_numbers_on_one_thread() -> None:
    x = torch.rand(2**26)
    compiled = metadef.compile(Call(torch.mean), (x,), threads=1, fallback="error")
    expected = x.double().mean().item()
    assert abs(compiled(x).item() - expected) <= 1e-6 * expected


def test_minimum_of_a_triangle_of_bytes_and_zero() -> None:
    x = torch.randint(-128, 128, (57, 22), dtype=torch.int8)
    zero = torch.zeros((), dtype=torch.int8)
    check(lambda x, zero: torch.minimum(torch.triu(x), zero), x, zero)


def test_attention_masked_in_place() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor, keep: Tensor) -> Tensor:
        scores = q @ k.transpose(-1, -2) / 4.0
        scores.masked_fill_(keep.logical_not(), float("-inf"))
        return scores.softmax(-1) @ v

    keep = torch.ones(6, 6, dtype=torch.bool).tril()
    check(attend, *torch.randn(3, 2, 4, 6, 16), keep)


@pytest.mark.parametrize("accumulate", [False, True])
def test_index_put_on_four_dims(accumulate: bool) -> None:
    def put(x: Tensor, rows: Tensor, columns: Tensor, values: Tensor) -> Tensor:
        return x.clone().index_put_((rows, columns), values, accumulate=accumulate)

    rows, columns = torch.tensor([0, 2, 1]), torch.tensor([3, 0, 2])
    check(put, torch.randn(3, 4, 5, 6), rows, columns, torch.randn(3, 5, 6))


def test_none_among_the_outputs() -> None:
    check(lambda x: (x + 1, None), torch.randn(4))

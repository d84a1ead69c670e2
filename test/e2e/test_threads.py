"""Results do not depend on the number of threads or on who comes first."""

from __future__ import annotations

import pytest
import torch
from accuracy import assert_as_accurate_as_eager
from torch import Tensor, nn
from torch.nn import functional as F

import metadef


class Attention(nn.Module):
    """Heads side by side in the result, as models want them."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
@pytest.mark.parametrize("length", [48, 150, 197])
def test_attention_gives_the_same_every_time(length: int, threads: int) -> None:
    torch.manual_seed(0)
    args = tuple(torch.randn(3, 1, 4, length, 32))
    compiled = metadef.compile(Attention(), args, threads=threads, fallback="error")
    assert_as_accurate_as_eager(compiled, Attention(), args)
    first = compiled(*args)
    assert all(torch.equal(compiled(*args), first) for _ in range(20))


class Rows(nn.Module):
    """Ops that work through rows one element after the other, and sums of everything."""

    def forward(self, x: Tensor, at: Tensor) -> tuple[Tensor, ...]:
        values, places = x.sort(stable=True)
        put = x.scatter_add(1, at, x[:, : at.shape[1]])
        return values, places, x.cumsum(1), x.flip(0).cumsum(0), put, x.sum(), x.amax(), x.mean(0)


@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_rows_are_shared_out(threads: int) -> None:
    torch.manual_seed(0)
    args = torch.randn(7, 9001), torch.randint(9001, (7, 500))
    compiled = metadef.compile(Rows(), args, threads=threads, fallback="error")
    assert_as_accurate_as_eager(compiled, Rows(), args)

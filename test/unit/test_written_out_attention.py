"""Attention that a model spells out runs as one kernel, and its numbers stay those of the parts.

Compared with eager in double precision, rows of NaN included (`accuracy`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from accuracy import assert_as_accurate_as_eager
from torch import Tensor
from torch.nn import functional as F

import metadef

_LOWER = torch.ones(20, 20, dtype=torch.bool).tril()


def _attend(scores: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(scores, dim=-1) @ v


def _scaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attend(q @ k.transpose(-1, -2) / math.sqrt(8), v)


def _query_scaled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attend((q * 0.3) @ k.mT, v)


def _added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attend(mask + 0.3 * (q @ k.mT), v)


def _filled(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return _attend((q @ k.mT).masked_fill(mask < 0, float("-inf")), v)


def _as_one_op(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def _lower(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    kept = _LOWER[: q.shape[-2], : k.shape[-2]]
    return _attend(torch.where(kept, q @ k.mT, -torch.inf), v)


@pytest.mark.parametrize("spelling", [_scaled, _query_scaled, _added, _filled, _lower])
@pytest.mark.parametrize("lead", [(2, 3), (4,)])
def test_is_one_kernel_with_the_same_numbers(
    spelling: Callable[..., Tensor], lead: tuple[int, ...]
) -> None:
    q, k, v = torch.randn(*lead, 11, 8), torch.randn(*lead, 20, 8), torch.randn(*lead, 20, 5)
    mask = torch.randn(11, 20)
    mask[3] = -torch.inf  # a row without keys is NaN, unlike in scaled_dot_product_attention
    compiled = metadef.compile(spelling, (q, k, v, mask))
    assert compiled.mlir("raise-attention").count('"metadef.attention"') == 1
    assert_as_accurate_as_eager(compiled, spelling, (q, k, v, mask))


def test_one_head_of_keys_serves_all() -> None:
    q, k, v = torch.randn(2, 6, 11, 8), torch.randn(2, 1, 20, 8), torch.randn(2, 1, 20, 5)
    compiled = metadef.compile(_scaled, (q, k, v, torch.zeros(())))
    assert '"metadef.attention"' in compiled.mlir("raise-attention")
    assert_as_accurate_as_eager(compiled, _scaled, (q, k, v, torch.zeros(())))


def test_weights_that_are_returned_are_made() -> None:
    def attend(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        weights = torch.softmax(q @ k.mT, dim=-1)
        return weights @ v, weights

    args = torch.randn(3, 7, 8), torch.randn(3, 9, 8), torch.randn(3, 9, 8)
    compiled = metadef.compile(attend, args)
    assert '"metadef.attention"' not in compiled.mlir("raise-attention")
    assert_as_accurate_as_eager(compiled, attend, args)


def test_sizes_that_vary() -> None:
    length, keys = torch.export.Dim("L", max=64), torch.export.Dim("S", max=64)
    args = torch.randn(3, 7, 8), torch.randn(3, 9, 8), torch.randn(3, 9, 8), torch.randn(7, 9)
    shapes = ({1: length}, {1: keys}, {1: keys}, {0: length, 1: keys})
    compiled = metadef.compile(_added, args, dynamic_shapes=shapes)
    assert '"metadef.attention"' in compiled.mlir("raise-attention")
    for rows, columns in ((7, 9), (64, 33), (2, 50)):
        args = (torch.randn(3, rows, 8), *torch.randn(2, 3, columns, 8), torch.randn(rows, columns))
        assert_as_accurate_as_eager(compiled, _added, args)


@pytest.mark.parametrize("attend", [_scaled, _as_one_op])
def test_no_keys_at_all_give_zero(attend: Callable[..., Tensor]) -> None:
    args = torch.randn(3, 7, 8), torch.randn(3, 9, 8), torch.randn(3, 9, 8), torch.zeros(())
    keys = {1: torch.export.Dim("S", min=0, max=64)}
    compiled = metadef.compile(attend, args, dynamic_shapes=({}, keys, keys, {}))
    none = args[0], *torch.randn(2, 3, 0, 8), args[3]
    torch.testing.assert_close(compiled(*none), attend(*none), rtol=0, atol=0)
    assert_as_accurate_as_eager(compiled, attend, args)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("log", [False, True])
def test_softmax_of_rows_that_are_not_numbers(dim: int, log: bool) -> None:
    x = torch.randn(40, 50)
    x[3, 7], x[20, 20], x[30] = torch.nan, torch.inf, -torch.inf
    x[:, 33] = torch.nan

    def softmax(x: Tensor) -> Tensor:
        return torch.log_softmax(x, dim) if log else torch.softmax(x, dim)

    torch.testing.assert_close(metadef.compile(softmax, (x,))(x), softmax(x), equal_nan=True)

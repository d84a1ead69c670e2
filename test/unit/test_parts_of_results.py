"""Results that many ops write, each a part."""

from __future__ import annotations

import torch
from torch import Tensor

import metadef


def test_concat_of_concats() -> None:
    def model(*xs: Tensor) -> Tensor:
        return torch.cat([x.exp() if i % 2 else x for i, x in enumerate(xs)], 1)

    xs = tuple(torch.rand(3, 1 + i % 3) for i in range(40))
    assert torch.allclose(metadef.compile(model, xs)(*xs), model(*xs), rtol=1e-6)


def test_overlapping_writes_into_slices_keep_their_order() -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        result = torch.zeros(8, 8)
        for i in range(6):
            result = result.slice_scatter(x * i, 0, i, i + 2)
            result = result.slice_scatter(y + i, 1, i, i + 2)
        return result

    x, y = torch.rand(2, 8), torch.rand(8, 2)
    assert torch.equal(metadef.compile(model, (x, y))(x, y), model(x, y))

"""Results that many ops write, each a part."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

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


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_concat_and_pad_of_dynamic_tensors(dim: int) -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        return F.pad(torch.cat([x, y + 1, x * 2], dim), (1, 0, 2, 1))

    b, t = torch.export.Dim("B", max=64), torch.export.Dim("T", max=64)
    x = torch.rand(3, 5, 4)
    shapes = ({0: b, 1: t}, {0: b, 1: t})
    compiled = metadef.compile(model, (x, x.clone()), dynamic_shapes=shapes, fallback="error")
    for shape in ((3, 5, 4), (1, 1, 4), (7, 2, 4)):
        x, y = torch.rand(shape), torch.rand(shape)
        assert torch.equal(compiled(x, y), model(x, y))

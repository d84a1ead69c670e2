"""Winograd's convolution: its matrices, its two transforms, whole models, and when it is chosen.

Tolerances: 1e-12 for matrices in double precision; 1e-4 of 1 and of the value for kernels in f32;
models must be within four times eager's own error against double precision.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accuracy import assert_as_accurate_as_eager
from native_kernel import check
from small_device import DEVICE
from torch import Tensor, nn

import metadef
from metadef.cost.convolution import Convolution, cheapest_tile, direct_cycles, winograd_cycles
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.ops.winograd_input import winograd_input
from metadef.dialects.metadef.ops.winograd_output import winograd_output
from metadef.dialects.metadef.winograd import POINTS, inputs_of, transforms


def normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("tile", POINTS)
def test_matrices_filter_exactly(tile: int) -> None:
    matrices = transforms(tile)
    b, g, a = (np.array(m) for m in (matrices.input, matrices.weight, matrices.output))
    rng = np.random.default_rng(tile)
    d, w = rng.standard_normal(inputs_of(tile)), rng.standard_normal(3)
    expected = [d[i : i + 3] @ w for i in range(tile)]
    np.testing.assert_allclose(a @ ((g @ w) * (b @ d)), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("tile", POINTS)
@pytest.mark.parametrize(("height", "width", "padding"), [
    (9, 6, [1, 1, 1, 1]), (7, 8, [0, 0, 0, 0]), (3, 4, [2, 2, 1, 0]), (1, 1, [1, 1, 1, 1]),
])  # fmt: skip
def test_input(tile: int, height: int, width: int, padding: list[int]) -> None:
    check(
        [(["N", height, width, 5], "f32")],
        lambda x: winograd_input(x, tile, padding),
        [normal(2, height, width, 5)],
        {"N": 2},
        1e-4,
    )


@pytest.mark.parametrize("tile", POINTS)
@pytest.mark.parametrize("sizes", [(4, 12), (7, 5), (1, 8), (2, 1)])
def test_output_with_what_follows(tile: int, sizes: tuple[int, int]) -> None:
    """A bias, a residual sum that is a result too, relu, and a transposed result."""
    tiles = [-(-s // tile) for s in sizes]
    products = [inputs_of(tile) ** 2, "N", *tiles, 3]

    def build(x: Any, bias: Any, residual: Any) -> Any:
        total = pointwise("add", pointwise("add", winograd_output(x, tile, sizes), bias), residual)
        return total, transpose(pointwise("relu", total), [0, 3, 1, 2])

    check(
        [(products, "f32"), ([3], "f32"), (["N", *sizes, 3], "f32")],
        build,
        [normal(products[0], 2, *tiles, 3), normal(3), normal(2, *sizes, 3)],
        {"N": 2},
        1e-4,
    )


class Residual(nn.Module):
    """3x3 convolutions with each padding, on channels that leave a tail, with all that follows."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(19, 24, 3, padding=1)
        self.norm = nn.BatchNorm2d(24)
        self.second = nn.Conv2d(24, 24, 3, padding=1, bias=False)
        self.narrow = nn.Conv2d(24, 21, 3)
        self.wide = nn.Conv2d(21, 18, 3, padding=2)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.norm(self.first(x)))
        y = torch.relu(self.second(y) + y)
        return torch.nn.functional.silu(self.wide(self.narrow(y)))


@pytest.mark.parametrize("tile", POINTS)
def test_model_is_as_accurate_as_eager(
    tile: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    chosen = "metadef.passes.choose_convolutions"
    monkeypatch.setattr(f"{chosen}.direct_cycles", lambda *_: math.inf)
    monkeypatch.setattr(f"{chosen}.cheapest_tile", lambda *_: tile)
    torch.manual_seed(tile)
    model, x = Residual().eval(), torch.randn(2, 19, 13, 10)
    batch = torch.export.Dim("B", max=8)
    compiled = metadef.compile(
        model, (x,), dynamic_shapes=({0: batch},), threads=2, fallback="error"
    )
    assert compiled.mlir("form-kernels").count('"metadef.winograd_output"') == 4
    for count in (1, 2, 5):
        images = (torch.randn(count, 19, 13, 10),)
        assert_as_accurate_as_eager(compiled, model, images)


def test_many_tiles_are_worth_larger_ones() -> None:
    deep, large = Convolution(1, 7, 7, 512, 512), Convolution(1, 56, 56, 64, 64)
    assert cheapest_tile(deep, DEVICE) < cheapest_tile(large, DEVICE)


def test_few_channels_keep_to_the_most_accurate_tiles() -> None:
    assert cheapest_tile(Convolution(1, 56, 56, 15, 64), DEVICE) == 2


def test_few_channels_or_tiles_are_summed_directly() -> None:
    for conv in (Convolution(1, 56, 56, 2, 64), Convolution(1, 2, 2, 512, 512)):
        tile = cheapest_tile(conv, DEVICE)
        assert winograd_cycles(conv, tile, DEVICE) > direct_cycles(conv, DEVICE), conv

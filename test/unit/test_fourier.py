"""Convolutions by spectra: the transforms, the two ops, whole models, and when they are chosen.

Tolerances: 1e-12 for transforms in double precision; 1e-4 of 1 and of the value for kernels in f32;
models must be within four times eager's own error against double precision.
"""

from __future__ import annotations

from dataclasses import replace
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
from metadef.cost.convolution import Convolution, direct_cycles, fourier_cycles
from metadef.dialects.metadef.fourier import LENGTHS, points_of, signal, spectrum, steps
from metadef.dialects.metadef.ops.fourier_input import fourier_input
from metadef.dialects.metadef.ops.fourier_output import fourier_output
from metadef.dialects.metadef.ops.pointwise import pointwise
from metadef.dialects.metadef.ops.transpose import transpose
from metadef.dialects.metadef.reference.window import Arrays
from metadef.frontend.options import empty_plan
from metadef.plan.plan import CONVOLUTION, Entry
from metadef.runtime.host import this_device


def normal(*shape: int) -> Any:
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", LENGTHS)
def test_products_of_spectra_are_circular_convolutions(length: int) -> None:
    a, b = np.random.default_rng(length).standard_normal((2, length))
    products = [x * y for x, y in zip(*(spectrum(list(v), Arrays()) for v in (a, b)), strict=True)]
    assert len(products) == points_of(length)
    expected = [sum(a[j] * b[i - j] for j in range(length)) for i in range(length)]
    found = np.array(signal(products, Arrays())) / length
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_transforms_are_fast() -> None:
    for length in LENGTHS:
        assert max(steps(length)) < 1.6 * length * np.log2(length)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(("length", "window", "padding"), [
    (8, 5, (2, 2)), (16, 7, (0, 0)), (32, 11, (5, 4)), (16, 16, (0, 3)), (8, 8, (3, 2)),
])  # fmt: skip
def test_input(axis: int, length: int, window: int, padding: tuple[int, int]) -> None:
    check(
        [(["N", 13, 14, 5], "f32")],
        lambda x: fourier_input(x, axis, length, window, padding),
        [normal(2, 13, 14, 5)],
        {"N": 2},
        1e-4,
    )


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize(("length", "window", "size"), [(8, 5, 11), (16, 7, 20), (32, 11, 5)])
def test_output_with_what_follows(axis: int, length: int, window: int, size: int) -> None:
    """A bias, a residual sum that is a result too, relu, and a transposed result."""
    tiled, image = [6, 6, 3], [6, 6, 3]
    tiled[axis - 1], image[axis - 1] = -(-size // (length - window + 1)), size
    points = points_of(length)

    def build(x: Any, bias: Any, residual: Any) -> Any:
        y = fourier_output(x, axis, length, window, size)
        total = pointwise("add", pointwise("add", y, bias), residual)
        return total, transpose(pointwise("relu", total), [0, 3, 1, 2])

    check(
        [([points, "N", *tiled], "f32"), ([3], "f32"), (["N", *image], "f32")],
        build,
        [normal(points, 2, *tiled), normal(3), normal(2, *image)],
        {"N": 2},
        1e-4,
    )


class Windows(nn.Module):
    """Large windows on channels that leave a tail: square, depthwise, a row, and padded ones."""

    def __init__(self) -> None:
        super().__init__()
        self.square = nn.Conv2d(19, 24, 5, padding=2)
        self.depthwise = nn.Conv2d(24, 24, 7, padding=3, groups=24, bias=False)
        self.row = nn.Conv2d(24, 21, (1, 7), padding=(1, 0))
        self.wide = nn.Conv2d(21, 18, (6, 5), padding=4)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.square(x))
        y = torch.relu(self.depthwise(y) + y)
        return torch.nn.functional.silu(self.wide(self.row(y)))


@pytest.mark.parametrize("length", [8, 16])
def test_model_is_as_accurate_as_eager(
    length: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    costs = "metadef.passes._fourier_convolution.fourier_cycles"
    monkeypatch.setattr(costs, lambda _, candidate, *__: -1.0 if candidate == length else 0.0)
    torch.manual_seed(length)
    model, x = Windows().eval(), torch.randn(2, 19, 13, 14)
    batch = torch.export.Dim("B", max=8)
    compiled = metadef.compile(
        model, (x,), dynamic_shapes=({0: batch},), threads=2, fallback="error"
    )
    text = compiled.mlir("form-kernels")
    assert '"metadef.conv"' not in text and f"length = {length} : i64" in text
    for count in (1, 2, 5):
        images = (torch.randn(count, 19, 13, 14),)
        assert_as_accurate_as_eager(compiled, model, images)


def test_a_plan_says_the_length_or_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    torch.manual_seed(0)
    model, x = nn.Conv2d(16, 16, 5, padding=2).eval(), torch.randn(1, 16, 9, 9)
    plan = empty_plan(this_device())
    (decision,) = [
        d for d in metadef.compile(model, (x,), plan=plan).decisions if d.kind == CONVOLUTION
    ]
    for algorithm in ({"algorithm": "fft", "tile": 16}, {"algorithm": "direct"}):
        entry = Entry(CONVOLUTION, decision.key, algorithm, "person")
        compiled = metadef.compile(model, (x,), plan=replace(plan, entries=(entry,)))
        (made,) = [d for d in compiled.decisions if d.kind == CONVOLUTION]
        assert made.chosen == algorithm
        assert_as_accurate_as_eager(compiled, model, (x,))
    wrong = Entry(CONVOLUTION, decision.key, {"algorithm": "winograd", "tile": 2}, "person")
    with pytest.warns(metadef.diagnostics.MetadefWarning, match="needs 3x3 weights"):
        compiled = metadef.compile(model, (x,), plan=replace(plan, entries=(wrong,)))
    assert_as_accurate_as_eager(compiled, model, (x,))


def best(conv: Convolution, device: Any = DEVICE) -> float:
    """Return the cost of windows over that of the best spectra."""
    lengths = [length for length in LENGTHS if length > max(conv.window)]
    return max(direct_cycles(conv, device) / fourier_cycles(conv, n, device) for n in lengths)


def test_spectra_pay_where_elements_are_used_often() -> None:
    assert best(Convolution(1, 56, 56, 64, 64, (7, 7))) > 2
    assert best(Convolution(1, 56, 56, 128, 128, (31, 31), groups=128)) > 1
    assert best(Convolution(1, 56, 56, 96, 96, (7, 7), groups=96)) < 1
    assert best(Convolution(1, 7, 7, 64, 64, (7, 7))) < 1


def test_devices_differ() -> None:
    wide = replace(DEVICE, vector_bits=512, caches=DEVICE.caches[:2])
    conv = Convolution(1, 56, 56, 24, 24, (5, 5))
    assert best(conv) > 1 > best(conv, wide)

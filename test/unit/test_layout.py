"""Layout as a decision: what it costs, what a plan makes of it; numbers stay.

Tolerance: 1e-5 of the largest output against double precision, for sums of up to 288 products in
float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_device import DEVICE
from torch import Tensor, nn

import metadef
from metadef.cost.layout import NCHW, NHWC, Windows, cheapest_layout
from metadef.diagnostics import PlanError
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.options import empty_plan
from metadef.plan.files import from_json, to_json
from metadef.plan.plan import LAYOUT, Entry
from metadef.runtime.host import this_device

TOLERANCE = 1e-5
EMPTY = empty_plan(this_device())
WIDE = replace(DEVICE, vector_bits=512)


pytestmark = pytest.mark.usefixtures("own_cache")


class Images(nn.Module):
    """Dense, depthwise, 1x1 and grouped convolutions, a residual sum, and pools."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.point = nn.Conv2d(32, 32, 1)
        self.grouped = nn.Conv2d(32, 16, 3, groups=4)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.relu(self.stem(x))
        x = x + torch.relu(self.point(self.depthwise(x)))
        x = self.grouped(nn.functional.max_pool2d(x, 3, 2, 1))
        return nn.functional.avg_pool2d(x, 2).flatten(1)


X = torch.randn(2, 3, 22, 26, generator=torch.Generator().manual_seed(1))


def compiled_with(plan: Any, module: nn.Module) -> CompiledModel:
    """Compile a model with a plan, and check its numbers."""
    compiled = metadef.compile(module, (X,), plan=plan)
    with torch.no_grad():
        expected = module.double()(X.double())
    module.float()
    error = (compiled(X).double() - expected).abs().max() / expected.abs().max()
    assert error <= TOLERANCE
    return compiled


def test_layouts_go_the_planned_way() -> None:
    module = Images().eval()
    default = compiled_with(EMPTY, module)
    made = [d for d in default.decisions if d.kind == LAYOUT]
    assert [d.what.ops for d in made] == [("conv",)] * 3 + [("pool",), ("conv",), ("pool",)]
    assert {d.chosen["layout"] for d in made} == {NHWC} and {d.by for d in made} == {"default"}
    plain = tuple(Entry(LAYOUT, d.key, {"layout": NCHW}) for d in made)
    for entries in (plain, plain[1:2]):
        compiled = compiled_with(replace(EMPTY, entries=entries), module)
        text = compiled.mlir("propagate-layout")
        # The 1x1 convolution is a product then.
        assert text.count('layout = "nchw"') == len(entries) - (entries == plain)
        assert compiled.report().plan is not None and compiled.report().plan.complete
    own = tuple(e for e in default.default_plan().entries if e.kind == LAYOUT)
    again = compiled_with(replace(EMPTY, entries=own), module)
    assert [k.name for k in again.kernels] == [k.name for k in default.kernels]
    assert [k.name for k in metadef.compile(module, (X,)).kernels] == [
        k.name for k in default.kernels
    ]


def windows(channels: int, summed: int, row: int, **others: Any) -> Windows:
    """Return a 3x3 op on square images that nobody has channels last."""
    steps, moved = 9 * channels * summed * row**2, 4 * row**2 * max(channels, summed)
    figures = {"stride": 1, "point": False, "moved": {NHWC: moved, NCHW: 0}, **others}
    return Windows(steps, channels, summed, row, **figures)


def test_lanes_decide_of_depthwise_convolutions() -> None:
    assert cheapest_layout(windows(256, 1, 7), DEVICE) == NCHW
    assert cheapest_layout(windows(256, 1, 7), WIDE) == NHWC
    assert cheapest_layout(windows(256, 1, 56), WIDE) == NCHW
    # Elements far apart are loaded one by one.
    assert cheapest_layout(windows(256, 1, 56, stride=5), DEVICE) == NHWC


def test_what_is_there_already_stays() -> None:
    there = {NHWC: 0, NCHW: 2**20}
    assert cheapest_layout(windows(256, 1, 56, moved=there), DEVICE) == NHWC
    assert cheapest_layout(windows(64, 64, 28, point=True), DEVICE) == NCHW
    assert cheapest_layout(windows(64, 64, 28, point=True, moved=there), DEVICE) == NHWC


def test_dense_convolutions_have_channels_last_unless_they_are_few() -> None:
    assert cheapest_layout(windows(64, 3, 112), DEVICE) == NHWC
    assert cheapest_layout(windows(64, 64, 7), DEVICE) == NHWC
    assert cheapest_layout(windows(4, 4, 96), DEVICE) == NCHW


def test_blocks_of_channels_are_refused_with_the_reason() -> None:
    plan = replace(EMPTY, entries=(Entry(LAYOUT, "0" * 32, {"layout": "nhwc"}),))
    assert from_json(to_json(plan)).entries[0].choice == {"layout": "nhwc"}
    with pytest.raises(PlanError, match='expected nhwc or nchw, got "blocked": channels in blocks'):
        from_json(to_json(plan).replace('"nhwc"', '"blocked"'))
    with pytest.raises(PlanError, match='choice.layout\': expected nhwc or nchw, got "nwhc"$'):
        from_json(to_json(plan).replace('"nhwc"', '"nwhc"'))

"""Products of one operand as one: numbers, plans, what is refused, and what it costs.

Tolerance against double precision: sums of up to 96 products in float32.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_device import DEVICE
from torch import Tensor, nn
from torch.nn import functional as F

import metadef
from metadef.cost.grouping import Siblings, apart_cycles, grouped_cycles, is_grouped
from metadef.diagnostics import MetadefWarning, PlanError
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.options import empty_plan
from metadef.plan.files import from_json, to_json
from metadef.plan.plan import GROUPING, Entry, ExecutionPlan
from metadef.runtime.host import this_device

TOLERANCE = 1e-5
EMPTY = empty_plan(this_device())


pytestmark = pytest.mark.usefixtures("own_cache")


class Attention(nn.Module):
    """Six heads on two; keys have no bias, and the values are read a second time."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.q, self.k = nn.Linear(96, 96), nn.Linear(96, 32, bias=False)
        self.v, self.o = nn.Linear(96, 32), nn.Linear(96, 96)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        values = self.v(x)
        q, k, v = (
            y.view(batch, length, -1, 16).transpose(1, 2) for y in (self.q(x), self.k(x), values)
        )
        y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, width)) + values.mean(-1, True)


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gate, self.up, self.down = nn.Linear(64, 90), nn.Linear(64, 90), nn.Linear(90, 64)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Inception(nn.Module):
    """Parallel 1x1 convolutions, two with a larger one behind, with activations."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.stem = nn.Conv2d(3, 24, 3, padding=1)
        self.a, self.b, self.c = (nn.Conv2d(24, n, 1) for n in (16, 9, 24))
        self.b3, self.c3 = nn.Conv2d(9, 8, 3, padding=1), nn.Conv2d(24, 8, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        a, b, c = (F.relu(conv(x)) for conv in (self.a, self.b, self.c))
        return torch.cat([a, self.b3(b), self.c3(c)], 1)


MODELS = {
    "attention": (Attention, torch.randn(2, 9, 96, generator=torch.Generator().manual_seed(1))),
    "gated": (Gated, torch.randn(7, 64, generator=torch.Generator().manual_seed(1))),
    "inception": (Inception, torch.randn(1, 3, 7, 7, generator=torch.Generator().manual_seed(1))),
}


def check(compiled: CompiledModel, module: nn.Module, x: Tensor) -> None:
    y = compiled(x)
    with torch.no_grad():
        expected = module.double()(x.double())
        module.float()
    assert (y.double() - expected).abs().max() <= TOLERANCE * expected.abs().max()


def decided(compiled: CompiledModel) -> list[Any]:
    return [d for d in compiled.decisions if d.kind == GROUPING]


def planned(compiled: CompiledModel, grouped: bool) -> ExecutionPlan:
    entries = [Entry(GROUPING, d.key, {"grouped": grouped}) for d in decided(compiled)]
    assert entries
    return replace(EMPTY, entries=tuple(entries))


@pytest.mark.parametrize("name", MODELS)
def test_numbers(name: str) -> None:
    kind, x = MODELS[name]
    module = kind().eval()
    default = metadef.compile(module, (x,), plan=EMPTY)
    compiled = metadef.compile(module, (x,), plan=planned(default, True))
    (decision,) = decided(compiled)
    assert decision.chosen == {"grouped": True} and decision.by == "person"
    check(compiled, module, x)


def test_parts_are_read_in_place_and_weights_are_stored_once() -> None:
    kind, x = MODELS["attention"]
    module = kind().eval()
    default = metadef.compile(module, (x,), plan=EMPTY)
    apart, one = (metadef.compile(module, (x,), plan=planned(default, g)) for g in (False, True))
    assert one.report().dispatches == apart.report().dispatches - 2
    check(apart, module, x)
    stored, before = (model.report().memory[0].weights for model in (one, apart))
    assert stored <= 1.01 * before


def test_sizes_that_vary() -> None:
    module = Attention().eval()
    dims = ({0: torch.export.Dim("B", max=8), 1: torch.export.Dim("S", max=64)},)
    x = MODELS["attention"][1]
    default = metadef.compile(module, (x,), dynamic_shapes=dims, plan=EMPTY)
    plan = planned(default, True)
    compiled = metadef.compile(module, (x,), dynamic_shapes=dims, plan=plan, fallback="error")
    assert decided(compiled)[0].chosen == {"grouped": True}
    for shape in ((2, 9, 96), (1, 1, 96), (5, 17, 96)):
        check(compiled, module, torch.randn(shape))


def test_double_precision() -> None:
    module = Gated().eval().double()
    x = MODELS["gated"][1].double()
    plan = planned(metadef.compile(module, (x,), plan=EMPTY), True)
    y = metadef.compile(module, (x,), plan=plan)(x)
    assert (y - module(x)).abs().max() <= 1e-13


def test_layers_that_share_weights_share_the_joined_ones() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Gated()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(self.inner(x))

    module, x = Twice().eval(), MODELS["gated"][1]
    plan = planned(metadef.compile(module, (x,), plan=EMPTY), True)
    compiled = metadef.compile(module, (x,), plan=plan)
    front = compiled.mlir("group-contractions")
    assert front.count("tensor<180x64xf32>)") == 2 and front.count("-> tensor<180x64xf32>") == 1
    check(compiled, module, x)


def test_what_cannot_be_grouped_is_refused() -> None:
    class Computed(nn.Module):
        def forward(self, x: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
            return x @ v, x @ w

    class Known(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v, self.w = (nn.Parameter(torch.randn(8, 8)) for _ in range(2))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x @ self.v, x @ self.w

    xs = tuple(torch.randn(8, 8) for _ in range(3))
    plan = planned(metadef.compile(Known(), xs[:1], plan=EMPTY), True)
    with pytest.warns(
        MetadefWarning, match="refused grouped true: .* that are known once"
    ) as found:
        compiled = metadef.compile(Computed(), xs, plan=plan)
    assert "instead: grouped false" in str(found[0].message)
    assert torch.allclose(compiled(*xs)[1], xs[0] @ xs[2], atol=1e-5)


def test_the_default_plan_says_it_and_is_followed(tmp_path: Path) -> None:
    kind, x = MODELS["gated"]
    module = kind().eval()
    plan = metadef.compile(module, (x,), plan=EMPTY).default_plan()
    (entry,) = [e for e in plan.entries if e.kind == GROUPING]
    assert entry.what.ops == ("contraction",) and len(entry.what.shapes) == 6
    again = from_json(to_json(plan), "plan")
    assert again == plan
    with warnings.catch_warnings():
        warnings.simplefilter("error", MetadefWarning)
        check(metadef.compile(module, (x,), plan=again), module, x)


@pytest.mark.parametrize(
    ("choice", "problem"), [('{"grouped": 1}', "grouped"), ('{"group": true}', "group")]
)
def test_a_bad_choice_is_an_error(choice: str, problem: str) -> None:
    text = to_json(replace(EMPTY, entries=(Entry(GROUPING, "0" * 32, {"grouped": True}),)))
    with pytest.raises(PlanError, match=problem):
        from_json(text.replace('{\n        "grouped": true\n      }', choice), "plan")


def test_narrow_products_cost_less_as_one() -> None:
    siblings = Siblings(1, 64, (64, 64, 64), 4, 3 * 64 * 64 * 4)
    assert is_grouped(siblings, DEVICE)


def test_cores_decide() -> None:
    siblings = Siblings(40, 256, (256, 64, 64), 4, 384 * 256 * 4)
    assert not is_grouped(siblings, DEVICE)
    assert is_grouped(siblings, replace(DEVICE, cores=64, threads=64))


def test_large_products_gain_nothing() -> None:
    siblings = Siblings(128, 768, (768, 768, 768), 4, 3 * 768 * 768 * 4)
    ratio = apart_cycles(siblings, DEVICE) / grouped_cycles(siblings, DEVICE)
    assert 1 <= ratio < 1.01 and not is_grouped(siblings, DEVICE)


def test_no_rows_cost_dispatches() -> None:
    siblings = Siblings(0, 64, (64, 64), 4, 2 * 64 * 64 * 4)
    assert grouped_cycles(siblings, DEVICE) < apart_cycles(siblings, DEVICE)


def test_passes_over_parts_cost() -> None:
    siblings = Siblings(8, 64, (64, 64), 4, 2 * 64 * 64 * 4)
    copied = replace(siblings, passes=(512, 512))
    assert grouped_cycles(copied, DEVICE) > grouped_cycles(siblings, DEVICE)
    assert is_grouped(siblings, DEVICE) and not is_grouped(copied, DEVICE)

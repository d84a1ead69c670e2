"""Fusion as a decision: what it costs, what a plan makes of it; numbers stay.

Tolerance: 1e-5 of the largest output against double precision, for sums of up to 256 products in
float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from small_device import DEVICE
from torch import Tensor, nn
from torch.nn import functional as F

import metadef
from metadef.cost.fusion import Chain, Rows, epilogue_pays, prologue_pays, rows_pay
from metadef.device.spec import Cache
from metadef.diagnostics import MetadefWarning, PlanError
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.options import empty_plan
from metadef.plan.decision import Decision
from metadef.plan.files import from_json, to_json
from metadef.plan.plan import FUSION, Entry
from metadef.runtime.host import this_device

TOLERANCE = 1e-5
EMPTY = empty_plan(this_device())


pytestmark = pytest.mark.usefixtures("own_cache")


class Images(nn.Module):
    """A residual block, an activation before a convolution, a pool, a product."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1)
        self.third, self.last = nn.Conv2d(8, 8, 3, stride=2), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        y = torch.relu(self.first(x))
        y = y + torch.relu(self.second(y))
        y = self.third(torch.sigmoid(y))
        return torch.tanh(self.last(y.mean((2, 3))))


class Block(nn.Module):
    """A transformer's block with a mask that is computed for it alone."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.norms = nn.ModuleList([nn.LayerNorm(32), nn.LayerNorm(32)])
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        heads = self.qkv(self.norms[0](x)).view(*x.shape[:2], 3, 4, 8).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*heads, attn_mask=torch.sigmoid(mask) * 3)
        x = x + self.out(y.transpose(1, 2).reshape(x.shape))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


MODELS = [
    (Images().eval(), (torch.randn(2, 3, 13, 11, generator=torch.Generator().manual_seed(1)),)),
    (
        Block().eval(),
        (
            torch.randn(2, 20, 32, generator=torch.Generator().manual_seed(1)),
            torch.randn(20, 20, generator=torch.Generator().manual_seed(2)),
        ),
    ),
]


def compiled_with(plan: Any, module: nn.Module, args: tuple[Tensor, ...]) -> CompiledModel:
    """Compile a model with a plan, and check its numbers."""
    compiled = metadef.compile(module, args, plan=plan)
    with torch.no_grad():
        expected = module.double()(*(x.double() for x in args))
    module.float()
    error = (compiled(*args).double() - expected).abs().max() / expected.abs().max()
    assert error <= TOLERANCE
    return compiled


def decided(model: CompiledModel) -> list[Decision]:
    return [d for d in model.decisions if d.kind == FUSION]


@pytest.mark.parametrize(("module", "args"), MODELS, ids=["images", "block"])
def test_chains_go_the_planned_way(module: nn.Module, args: tuple[Tensor, ...]) -> None:
    default = compiled_with(EMPTY, module, args)
    made = decided(default)
    assert len(made) >= 4 and {d.by for d in made} == {"default"}
    counts = {}
    for fused in (True, False):
        entries = tuple(Entry(FUSION, d.key, {"fused": fused}, what=d.what) for d in made)
        compiled = compiled_with(replace(EMPTY, entries=entries), module, args)
        assert {d.by for d in decided(compiled) if d.key in {e.key for e in entries}} == {"person"}
        assert compiled.report().plan is not None
        assert compiled.report().plan.fallbacks == ()
        counts[fused] = len(compiled.kernels)
    assert counts[True] < counts[False]
    kernels = [k.name for k in metadef.compile(module, args).kernels]
    assert kernels == [k.name for k in default.kernels]


def test_the_default_plan_makes_the_same_kernels() -> None:
    module, args = MODELS[1]
    default = compiled_with(EMPTY, module, args)
    entries = tuple(e for e in default.default_plan().entries if e.kind == FUSION)
    assert len(entries) >= 4
    again = compiled_with(replace(EMPTY, entries=entries), module, args)
    assert [k.name for k in again.kernels] == [k.name for k in default.kernels]
    assert again.report().plan is not None and again.report().plan.complete


def test_what_others_read_stays_apart() -> None:
    class Shared(nn.Module):
        def __init__(self, shares: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.first, self.shares = nn.Linear(6, 4, bias=False), shares

        def forward(self, x: Tensor) -> Any:
            y = torch.exp(x)
            return (self.first(y), y) if self.shares else self.first(y)

    x = torch.randn(8, 6)
    (alone,) = decided(metadef.compile(Shared(False).eval(), (x,), plan=EMPTY))
    assert alone.what.ops == ("exp", "contraction")
    # Where others read the value is part of what the key is of.
    plan = replace(EMPTY, entries=(Entry(FUSION, alone.key, {"fused": True}),))
    with pytest.warns(MetadefWarning, match="1 not met in this model"):
        compiled = metadef.compile(Shared(True).eval(), (x,), plan=plan)
    y, z = compiled(x)
    torch.testing.assert_close(z, torch.exp(x), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(y, Shared(True).first(torch.exp(x)), rtol=1e-5, atol=1e-5)


def test_an_epilogue_always_pays() -> None:
    for size in (1, 2**10, 2**16, 2**22, 2**28):
        for registers in (1, 9, 40):
            assert epilogue_pays(Chain(size, 0, 0.0, registers), DEVICE)


def test_a_mask_of_many_readers_is_kept() -> None:
    cheap = Chain(bytes=2**20, read_bytes=2**18, flops=2.0**18)
    dear = replace(cheap, flops=30 * 2.0**18)
    assert prologue_pays(cheap, 1, DEVICE) and prologue_pays(dear, 1, DEVICE)
    assert prologue_pays(cheap, 12, DEVICE) and not prologue_pays(dear, 12, DEVICE)
    assert prologue_pays(dear, 12, replace(DEVICE, vector_bits=8192))


def test_rows_are_shared_where_the_other_operand_is_near() -> None:
    chain = Chain(bytes=4096 * 256 * 4, read_bytes=4096 * 256 * 4, flops=4096 * 256 * 24.0)
    product = Rows(batch=1, rows=4096, depth=256, outputs=128, other_bytes=256 * 128 * 4)
    assert rows_pay(chain, product, DEVICE)
    far = replace(DEVICE, caches=(DEVICE.caches[0], Cache(2, 2**16, 64, 1), DEVICE.caches[2]))
    assert not rows_pay(chain, product, far)
    # There are fewer boxes than cores.
    assert not rows_pay(chain, product, replace(DEVICE, cores=256))
    assert not rows_pay(replace(chain, bytes=2**12), replace(product, rows=4), DEVICE)


def test_the_schema_knows_the_choice() -> None:
    plan = replace(EMPTY, entries=(Entry(FUSION, "0" * 32, {"fused": False}),))
    assert from_json(to_json(plan)).entries[0].choice == {"fused": False}
    with pytest.raises(PlanError, match="choice.fused': expected true or false"):
        from_json(to_json(plan).replace("false", '"no"'))
    with pytest.raises(PlanError, match="unknown field 'fuse'; did you mean 'fused'"):
        from_json(to_json(plan).replace('"fused"', '"fuse"'))

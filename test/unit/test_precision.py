"""Weights stored in fewer bits: kernels, whole models, plans, limits, and when it is chosen.

Tolerances, against double precision: an output of a linear layer is a sum of weights' products, so
rounding each weight by the relative error u moves it by at most u times the sum of their magnitudes
(u is 2^-9 for bf16 and 2^-12 for f16; twice that is allowed, which holds f32's own rounding too).
i8 moves each weight by at most half a step, 1/127 of its channel's largest.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_device
import torch
from native_kernel import check
from torch import Tensor, nn

import metadef
from metadef.cost.weights import Product, cheapest_type, product_cycles
from metadef.device.spec import Cache
from metadef.diagnostics import MetadefError, MetadefWarning, PlanError
from metadef.dialects.metadef.ops.contraction import contraction
from metadef.dialects.metadef.ops.unpack import unpack
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.options import empty_plan
from metadef.measure.accuracy import output_error, relative_error
from metadef.plan.files import from_json, to_json
from metadef.plan.plan import PRECISION, Entry, ExecutionPlan
from metadef.runtime.host import this_device

#: weights of 8 MiB and more come from memory
DEVICE = replace(
    small_device.DEVICE, caches=(*small_device.DEVICE.caches[:2], Cache(3, 2**23, 64, 2))
)
EMPTY = empty_plan(this_device())


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path / "cache"))


def linear(inputs: int, outputs: int) -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(inputs, outputs).eval()


def decided(model: CompiledModel) -> list[Any]:
    return [d for d in model.decisions if d.kind == PRECISION]


def planned(module: nn.Module, x: Tensor, type_: str, **options: Any) -> CompiledModel:
    """Compile with each product's weights in a type."""
    model = metadef.compile(module, (x,), plan=EMPTY, **options)
    entries = [Entry(PRECISION, d.key, {"weights": type_}) for d in decided(model)]
    assert entries
    return metadef.compile(module, (x,), plan=replace(EMPTY, entries=tuple(entries)), **options)


@pytest.mark.parametrize("element", ["bf16", "f16", "i8"])
@pytest.mark.parametrize("panels", [False, True])
def test_kernel(element: str, panels: bool) -> None:
    rng = np.random.default_rng(0)
    dtype = {"bf16": np.float32, "f16": np.float16, "i8": np.int8}[element]
    dims = [3, 6, 8] if panels else [20, 6]
    w = rng.integers(-128, 128, dims).astype(dtype)
    x = rng.standard_normal((2, 6)).astype(np.float32)

    def build(x: Any, w: Any) -> Any:
        return contraction(x, unpack(w, 0, 0, 20) if panels else w, transpose_rhs=True)

    check([(["B", 6], "f32"), (dims, element)], build, [x, w], {"B": 2}, tolerance=1e-4)


@pytest.mark.parametrize("rows", [1, 13])
@pytest.mark.parametrize("type_", ["bf16", "f16", "i8"])
def test_linear(rows: int, type_: str) -> None:
    module, x = linear(203, 150), torch.randn(rows, 203)
    y = planned(module, x, type_)(x).detach().double()
    w, bias = (p.detach().double() for p in (module.weight, module.bias))
    reference = x.double() @ w.T + bias
    if type_ == "i8":
        step = w.abs().amax(1) / 127
        allowed = x.double().abs().sum(1, keepdim=True) * step * 0.51
    else:
        unit = {"bf16": 2.0**-8, "f16": 2.0**-11}[type_]
        allowed = unit * (x.double().abs() @ w.abs().T)
    error = (y - reference).abs()
    assert (error <= allowed + 1e-6).all()
    assert error.max() > 1e-5  # it is another precision


def test_convolution_by_one_pixel_and_varying_batch() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(5, 33, 3), nn.ReLU(), nn.Conv2d(33, 9, 1)).eval()
    x = torch.randn(2, 5, 6, 8)
    shapes = ({0: torch.export.Dim("n", min=1, max=9)},)
    model = planned(module, x, "i8", dynamic_shapes=shapes)
    for n in (1, 2, 5):
        images = torch.randn(n, 5, 6, 8)
        assert relative_error(model(images), module(images)) < 2e-2


def test_zeros_and_extremes_in_eight_bits() -> None:
    module = linear(32, 4)
    with torch.no_grad():
        module.weight[0] = 0
        module.weight[1] = torch.finfo(torch.float32).tiny / 4
        module.weight[2] *= 1e30
        module.weight[3, 5] = float("inf")
    x = torch.rand(1, 32)
    y = planned(module, x, "i8")(x)[0]
    assert y[0] == module.bias[0]
    assert abs(y[1] - module.bias[1]) < 1e-30
    assert relative_error(y[2], module(x)[0, 2]) < 1e-2
    assert torch.isnan(y[3])


def test_half_the_memory() -> None:
    module, x = linear(512, 512), torch.randn(1, 512)

    def weights(type_: str) -> int:
        return sum(m.weights for m in planned(module, x, type_).report().memory)

    assert weights("bf16") <= weights("f32") - 512 * 512 * 2


def test_without_limit_nothing_changes() -> None:
    module, x = linear(64, 96), torch.randn(3, 64)
    model = metadef.compile(module, (x,))
    assert torch.equal(model(x), planned(module, x, "f32")(x))
    assert not any("bf16" in a for k in model.kernels for a in k.arguments)


def test_limit() -> None:
    """On a device whose caches hold no weights all of them have something to gain."""
    torch.manual_seed(0)
    module, x = nn.Linear(2048, 512, bias=False).eval(), torch.randn(1, 2048)
    device = replace(this_device(), caches=DEVICE.caches[:1])
    options: dict[str, Any] = {"device": device, "threads": 1}
    exact = metadef.compile(module, (x,), error_limit=1e-5, **options)
    close = metadef.compile(module, (x,), error_limit=5e-3, **options)
    loose = metadef.compile(module, (x,), error_limit=2e-2, **options)
    assert [decided(m)[0].chosen["weights"] for m in (exact, close, loose)] == ["f32", "bf16", "i8"]
    for model, limit in ((exact, 1e-5), (close, 5e-3), (loose, 2e-2)):
        assert output_error(model, module, (x,)) <= limit
        assert not model.report().plan.fallbacks  # type: ignore[union-attr]
    again = metadef.compile(module, (x,), error_limit=5e-3, **options)
    assert decided(again) == decided(close)
    assert "bf16" in again.mlir("choose-precision")


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        ("0.1", "expected a number, got str"),
        (True, "expected a number, got bool"),
        (0.0, "expected over 0 and under 1, got 0.0"),
        (1.5, "expected over 0 and under 1, got 1.5"),
        (float("nan"), "expected over 0 and under 1, got nan"),
    ],
)
def test_no_limit(limit: Any, said: str) -> None:
    with pytest.raises(MetadefError, match=f"error_limit: {said}"):
        metadef.compile(linear(4, 4), (torch.randn(1, 4),), error_limit=limit)


def test_plan_round_trip() -> None:
    module, x = linear(40, 70), torch.randn(2, 40)
    model = planned(module, x, "bf16")
    plan = from_json(to_json(model.default_plan()))
    (entry,) = [e for e in plan.entries if e.kind == PRECISION]
    assert entry.choice == {"weights": "bf16"}
    assert torch.equal(metadef.compile(module, (x,), plan=plan)(x), model(x))


@pytest.mark.parametrize("choice", [{"weights": "int4"}, {"weight": "bf16"}, {}])
def test_plan_with_another_choice_is_refused(choice: dict[str, str]) -> None:
    text = to_json(replace(EMPTY, entries=(Entry(PRECISION, "0" * 32, {"weights": "bf16"}),)))
    said = text.replace('"weights": "bf16"', str(choice)[1:-1].replace("'", '"'))
    with pytest.raises(PlanError):
        from_json(said)


def test_plan_of_computed_operands_falls_back() -> None:
    class Square(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x @ x

    x = torch.randn(24, 24)
    known = metadef.compile(_Known(), (x,), plan=EMPTY)
    (decision,) = decided(known)
    plan: ExecutionPlan = replace(
        EMPTY, entries=(Entry(PRECISION, decision.key, {"weights": "bf16"}),)
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = metadef.compile(Square(), (x,), plan=plan)
    texts = [str(w.message) for w in caught if issubclass(w.category, MetadefWarning)]
    assert any("needs a right operand, and no left one, that is known once" in t for t in texts)
    assert relative_error(model(x), x @ x) < 1e-5


class _Known(nn.Module):
    """A product of the same sizes as a square's, by a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.eye(24))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.w


def test_cost() -> None:
    row, many = Product(1, 4096, 4096), Product(256, 4096, 4096)
    held = row.weights * 4
    allowed = ("bf16", "i8")
    assert cheapest_type(row, held, DEVICE, allowed) == "i8"
    assert cheapest_type(row, held, DEVICE, ("bf16",)) == "bf16"
    assert cheapest_type(row, held, DEVICE, ()) == "f32"
    assert cheapest_type(many, held, DEVICE, allowed) == "f32"
    # In the nearest cache there is nothing to wait for.
    assert cheapest_type(Product(1, 64, 64), 64 * 64 * 4, DEVICE, allowed) == "f32"
    ratio = product_cycles(row, "f32", held, DEVICE) / product_cycles(row, "bf16", held, DEVICE)
    assert ratio == pytest.approx(2)


def test_output_error() -> None:
    x = torch.tensor([1.0, -4.0])
    assert output_error(lambda x: (x * 1.5, 3), lambda x: (x, 3), (x,)) == pytest.approx(0.5)
    assert output_error(lambda x: x.argmax(), lambda x: x.argmin(), (x,)) == float("inf")
    with pytest.raises(MetadefError, match="expected an output of"):
        output_error(lambda x: x.double(), lambda x: x, (x,))
    with pytest.raises(MetadefError, match="expected outputs as"):
        output_error(lambda x: (x, x), lambda x: x, (x,))

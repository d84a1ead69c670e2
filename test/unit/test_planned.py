"""Models compiled with plans: choices are followed, or refused with a warning; numbers stay so."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import metadef
from metadef.codegen import planned
from metadef.diagnostics import MetadefError, MetadefWarning
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.options import empty_plan
from metadef.plan.files import save
from metadef.plan.kernel_choice import KernelChoice
from metadef.plan.plan import CONVOLUTION, SCHEDULE, Entry, ExecutionPlan, PlannedDevice
from metadef.runtime.host import this_device

# float32 against double precision: sums of up to 600 products.
TOLERANCE = 1e-5


pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(autouse=True)
def all_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        yield


class Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(70, 150), nn.Linear(150, 40)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(nn.functional.gelu(self.first(x)))


class Image(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = nn.Conv2d(64, 64, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


ROWS = torch.randn(50, 70, generator=torch.Generator().manual_seed(1))
PICTURE = torch.randn(1, 64, 12, 12, generator=torch.Generator().manual_seed(1))
EMPTY = empty_plan(this_device())


def compiled_with(
    plan: Any, module: nn.Module | None = None, x: torch.Tensor = ROWS
) -> CompiledModel:
    """Compile a model with a plan, and check its numbers."""
    module = module or Layers().eval()
    compiled = metadef.compile(module, (x,), plan=plan)
    with torch.no_grad():
        expected = module.double()(x.double())
        module.float()
    error = (compiled(x).double() - expected).abs().max() / expected.abs().max()
    assert error <= TOLERANCE
    return compiled


def default_plan(module: nn.Module | None = None, x: torch.Tensor = ROWS) -> ExecutionPlan:
    """Return the default plan's schedules and algorithms; other kinds have tests of their own."""
    plan = compiled_with(EMPTY, module, x).default_plan()
    kept = (SCHEDULE, CONVOLUTION)
    return replace(plan, entries=tuple(e for e in plan.entries if e.kind in kept))


def edited(plan: ExecutionPlan, number: int, **fields: Any) -> ExecutionPlan:
    """Return a plan with fields of one of its entries replaced."""
    entries = list(plan.entries)
    entries[number] = replace(entries[number], **fields)
    return replace(plan, entries=tuple(entries))


def texts(found: Any) -> list[str]:
    return [str(w.message) for w in found if issubclass(w.category, MetadefWarning)]


def test_an_empty_plan_changes_nothing() -> None:
    compiled = compiled_with(EMPTY)
    assert {d.by for d in compiled.decisions} == {"default"}
    assert str(compiled.report().plan) == "0 of 0 decisions of the plan applied"
    plain = metadef.compile(Layers().eval(), (ROWS,))
    assert plain.decisions == () and plain.report().plan is None
    assert [k["key"] for k in _kernels(plain)] == [k["key"] for k in _kernels(compiled)]


def _kernels(compiled: CompiledModel) -> list[dict[str, str]]:
    return [k for part in compiled.plan["parts"] for k in part["kernels"].values()]


def test_the_default_plan_says_each_kernel_in_full() -> None:
    plan = default_plan()
    assert [e.kind for e in plan.entries] == [SCHEDULE, SCHEDULE]
    assert all({"rows", "vectors", "tiles"} <= set(e.choice) for e in plan.entries)
    assert "contraction" in plan.entries[0].what.ops
    with warnings.catch_warnings(record=True) as found:
        report = compiled_with(plan).report()
    assert str(report.plan) == "2 of 2 decisions of the plan applied"
    assert texts(found) == []


def test_a_persons_choice_is_followed_and_marked(tmp_path: Path) -> None:
    plan = edited(default_plan(), 0, choice={"rows": 2, "vectors": 1}, by="person")
    save(plan, tmp_path / "plan.json")
    compiled = compiled_with(str(tmp_path / "plan.json"))
    (decision,) = [d for d in compiled.decisions if d.by == "person"]
    assert decision.chosen == {"rows": 2, "vectors": 1}
    assert "1 a person's own" in str(compiled.report())
    loops = compiled.mlir("vectorize", decision.what.kernel)
    assert loops != metadef.compile(Layers().eval(), (ROWS,)).mlir(
        "vectorize", decision.what.kernel
    )


def test_what_is_illegal_falls_back_to_the_second_and_says_so() -> None:
    second = {"rows": 2, "vectors": 1}
    plan = edited(default_plan(), 0, choice={"rows": 40, "vectors": 2}, second=second, by="person")
    with pytest.warns(MetadefWarning) as found:
        compiled = compiled_with(plan)
    (warning,) = texts(found)
    assert "schedule of contraction_add_gelu" in warning
    assert "refused rows 40, vectors 2: field 'rows': expected at most" in warning
    assert "instead: rows 2, vectors 1 (by person)" in warning
    assert "1 of 2 decisions of the plan applied: 1 refused" in str(compiled.report())


def test_what_is_illegal_twice_falls_back_to_the_default() -> None:
    bad = {"tiles": [1, 2, 3, 4]}
    plan = edited(default_plan(), 1, choice=bad, second={"rows": 99}, by="search")
    with pytest.warns(MetadefWarning) as found:
        compiled_with(plan)
    (warning,) = texts(found)
    assert "tiles [1, 2, 3, 4]" in warning and "rows 99" in warning
    assert warning.endswith("instead: the default")


def test_a_kernel_that_computes_otherwise_alone_is_not_used(monkeypatch: Any) -> None:
    plan = edited(default_plan(), 0, choice={"rows": 5}, second={"rows": 1}, by="search")
    tried = []

    def compare(function: Any, chosen: Any, *others: Any) -> str:
        tried.append(chosen.key)
        return "result 0 is off" if len(tried) == 1 else ""

    monkeypatch.setattr(planned, "compare", compare)
    with pytest.warns(MetadefWarning, match="rows 5: result 0 is off; instead: rows 1"):
        compiled_with(plan)


def test_a_kernel_is_compared_once(monkeypatch: Any) -> None:
    plan = edited(default_plan(), 0, choice={"rows": 2}, by="search")
    compiled_with(plan)
    monkeypatch.setattr(planned, "compare", lambda *_: pytest.fail("compared again"))
    other = edited(plan, 1, by="person")  # another plan: nothing else is kept
    monkeypatch.setattr("metadef.frontend.compiler.find_front", lambda *_: None)
    compiled_with(replace(other, entries=other.entries[:1]))


def test_a_kept_model_has_its_plan() -> None:
    plan = edited(default_plan(), 0, choice={"rows": 40}, by="person")
    for _ in range(3):
        with pytest.warns(MetadefWarning, match="refused rows 40"):
            compiled = compiled_with(plan)
        assert compiled.report().plan is not None
    assert compiled_with(None).decisions == ()


def test_a_plan_for_others_says_how_much_of_it_applies() -> None:
    plan = default_plan()
    elsewhere = replace(
        plan,
        model="f" * 32,
        device=PlannedDevice("other", "0" * 64),
        entries=(*plan.entries, Entry(SCHEDULE, "0" * 32, {"rows": 1})),
    )
    with pytest.warns(MetadefWarning) as found:
        compiled_with(elsewhere)
    assert texts(found) == [
        "plan: 2 of 3 decisions of the plan applied: 1 not met in this model, it was made for "
        "another model, device"
    ]


def test_a_convolution_goes_the_planned_way() -> None:
    module = Image().eval()
    plan = default_plan(module, PICTURE)
    (number,) = [n for n, e in enumerate(plan.entries) if e.kind == CONVOLUTION]
    for choice, mark in (
        ({"algorithm": "direct"}, "metadef.conv"),
        ({"algorithm": "winograd", "tile": 2}, "tile = 2"),
        ({"algorithm": "winograd", "tile": 3}, "tile = 3"),
    ):
        entry = replace(plan.entries[number], choice=choice, by="person")
        compiled = compiled_with(replace(plan, entries=(entry,)), module, PICTURE)
        assert mark in compiled.mlir("choose-convolutions")
        assert compiled.report().plan is not None and compiled.report().plan.applied == 1


def test_an_algorithm_that_cannot_be_is_refused() -> None:
    class Strided(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.conv(x)

    x = torch.randn(1, 3, 12, 12)
    plan = default_plan(Strided().eval(), x)
    (entry,) = [e for e in plan.entries if e.kind == CONVOLUTION]
    wanted = {"algorithm": "winograd", "tile": 4}
    plan = replace(plan, entries=(replace(entry, choice=wanted, by="search"),))
    with pytest.warns(MetadefWarning, match="needs at least 32 channels to be accurate, got 3"):
        compiled_with(plan, Strided().eval(), x)


def test_torch_compile_takes_a_plan() -> None:
    torch.compiler.reset()
    module = Layers().eval()
    plan = replace(EMPTY, entries=())
    compiled = torch.compile(module, backend="metadef", options={"plan": plan})
    with torch.no_grad():
        torch.testing.assert_close(compiled(ROWS), module(ROWS), rtol=1e-4, atol=1e-5)


def test_no_plan_at_all_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MetadefError, match=r"plan '.*none.json': cannot be read"):
        metadef.compile(Layers(), (ROWS,), plan=tmp_path / "none.json")
    with pytest.raises(MetadefError, match="plan: expected an ExecutionPlan or the path of one"):
        metadef.compile(Layers(), (ROWS,), plan=3)
    with pytest.raises(MetadefError, match="default_plan: expected a model compiled with a plan"):
        metadef.compile(Layers().eval(), (ROWS,)).default_plan()


def test_the_kernels_of_a_model_have_their_choices() -> None:
    compiled = compiled_with(EMPTY)
    first, second = compiled.plannable_kernels()
    assert first.key != second.key and first.runs == second.runs == 1
    assert [first.key, second.key] == [
        e.key for e in compiled.default_plan().entries if e.kind == SCHEDULE
    ]
    choice = KernelChoice(rows=2)
    plan = replace(EMPTY, entries=(Entry(SCHEDULE, first.key, choice.to_data()),))
    keys = [k["key"] for k in _kernels(compiled_with(plan))]
    assert first.under(choice).symbol in keys and second.source.symbol in keys

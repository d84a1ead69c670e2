"""Calibration: what is measured, what is kept of it, and that it goes on where it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from metadef import ir
from metadef.calibrate import kernels, run
from metadef.calibrate.case import Apply, Case
from metadef.calibrate.cases import KINDS, cases, working_sets
from metadef.calibrate.run import calibrate
from metadef.cli.main import main
from metadef.cost.kernel_traits import KernelTraits, kernel_traits
from metadef.cost.model.fitted import usable
from metadef.cost.table.table import Table
from metadef.device.spec import Cache
from metadef.diagnostics import MetadefError
from metadef.frontend.model_kernels import model_kernels
from metadef.measure.alone import Outcome
from metadef.runtime.host import this_device


def traits(model: nn.Module, *args: Tensor) -> list[KernelTraits]:
    found = []
    for kernel in model_kernels(model.eval(), args, spec=this_device()):
        with ir.make_context(), ir.Location.unknown():
            module = ir.Module.parse(kernel.source.text)
            found.append(kernel_traits(module.body.operations[0]))
    return found


def product(m: int, k: int, n: int) -> list[KernelTraits]:
    return traits(nn.Linear(k, n), torch.rand(m, k))


def test_kernels_that_differ_in_sizes_are_a_family() -> None:
    (small,), (large,), (vector,) = product(32, 64, 128), product(48, 256, 96), product(1, 64, 128)
    assert small.family == large.family != vector.family
    assert (small.kind, vector.kind) == ("contraction", "matrix_vector")
    assert small.layout == "packed" and small.precision == "f32" and small.fused
    assert small.extents({})[-2:] == (32, 128)


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        (nn.Conv2d(3, 16, 3), "convolution_3x3"),
        (nn.Conv2d(3, 16, 3, stride=2), "strided"),
        (nn.Conv2d(3, 16, 5), "convolution"),
        (nn.Conv2d(3, 3, 3, groups=3), "depthwise"),
        (nn.MaxPool2d(2), "pool"),
        (nn.Softmax(1), "softmax"),
    ],
)
def test_tells_kinds(layer: nn.Module, kind: str) -> None:
    assert kind in [t.kind for t in traits(layer, torch.rand(1, 3, 20, 20))]


def test_sizes_follow_from_the_caches() -> None:
    caches = (Cache(1, 16 << 10, 64, 1), Cache(2, 1 << 20, 64, 1))
    spec = replace(this_device(), caches=caches)
    assert working_sets(spec) == [8 << 10, 128 << 10, 2 << 20]
    assert {case.kind for case in cases(spec)} == set(KINDS)
    for kind in KINDS:
        assert len({case.name for case in cases(spec, [kind])}) >= 6
        assert len(cases(spec, [kind], quick=True)) == 3


def test_an_unknown_kind_lists_the_near_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(MetadefError, match="no kind 'convolution3x3' .*'convolution_3x3'"):
        cases(this_device(), ["convolution3x3"])


def sine(x: Tensor) -> Tensor:
    return torch.sin(x) + 1.0


def broken() -> tuple[nn.Module, tuple[Tensor, ...]]:
    return Apply(lambda x, y: x @ y), (torch.rand(2, 3), torch.rand(2, 3))


@pytest.fixture
def few_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    good = Case("pointwise", "sine", lambda: (Apply(sine), (torch.rand(33, 17),)), choices=2)
    sized = Case("pointwise", "B", lambda: (Apply(sine), (torch.rand(8, 17),)), 0, (4, 9))
    monkeypatch.setattr(run, "cases", lambda *_: [good, Case("contraction", "bad", broken), sized])


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are not run: on a busy machine some would be noisy, and measured again."""

    def measured(built: list[object], *_: object) -> list[Outcome]:
        return [Outcome(110.0, 120.0, 100.0, 0.01, 20) for _ in built]

    monkeypatch.setattr(kernels, "measure_alone", measured)


@pytest.mark.usefixtures("few_cases", "steady")
def test_keeps_what_it_measured_and_goes_on(tmp_path: Path) -> None:
    with Table(tmp_path / "table.sqlite") as table:
        done = calibrate(this_device(), table, quick=True)
        assert (done.cases, done.failed, done.measured) == (3, 1, len(table) - 1)
        found = [m for m in table.find(kind="pointwise") if m.failed is None]
        assert {m.symbols.get("B") for m in found} == {None, 4, 9}
        default = next(m for m in found if not m.moves and not m.symbols)
        assert default.features["flops"] > 0 and default.choice and default.least_ns > 0
        assert any(m.moves for m in found) and "sin" in (table.text(default.text) or "")
        (bad,) = table.find(kind="contraction")
        assert bad.failed is not None and bad.failed.startswith("bad: ")
        again = calibrate(this_device(), table, quick=True)
        assert (again.measured, again.failed) == (0, 0)


@pytest.mark.usefixtures("few_cases")
def test_what_was_noisy_is_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spread = 0.2

    def measured(built: list[object], *_: object) -> list[Outcome]:
        return [Outcome(110.0, 120.0, 100.0, spread, 20) for _ in built]

    monkeypatch.setattr(kernels, "measure_alone", measured)
    with Table(tmp_path / "table.sqlite") as table:
        noisy = calibrate(this_device(), table, quick=True)
        spread = 0.01
        quiet = calibrate(this_device(), table, quick=True)
        assert noisy.flagged == noisy.measured == quiet.measured
        assert calibrate(this_device(), table, quick=True).measured == 0
        assert quiet.flagged == 0 and not any(m.flagged for m in usable(table.find()))


@pytest.mark.usefixtures("few_cases")
def test_a_crash_costs_one_measurement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(built: list[object], *_: object) -> list[Outcome]:
        good = Outcome(110.0, 120.0, 100.0, 0.2, 20)
        return [good, *(Outcome(failed="it died") for _ in built[1:])]

    monkeypatch.setattr(kernels, "measure_alone", crash)
    with Table(tmp_path / "table.sqlite") as table:
        calibrate(this_device(), table, quick=True)
        sines = [m for m in table.find(kind="pointwise") if not m.symbols]
        assert [m.failed for m in sines] == [None, *["it died"] * (len(sines) - 1)]
        assert [m.flagged for m in sines] == [True, *[False] * (len(sines) - 1)]
        assert not any(m.usable for m in sines)


@pytest.mark.usefixtures("few_cases", "steady")
def test_the_command_exports_and_merges(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = (str(tmp_path / name) for name in ("a.sqlite", "b.sqlite"))
    with Table(Path(second)) as table:
        calibrate(this_device(), table, quick=True)
    csv = tmp_path / "table.csv"
    command = ["device", "calibrate", "--quick", "-o", first, "--merge", second, "--csv", str(csv)]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert "new measurements" in said and ": 0 measurements of 3 cases" in said
    assert csv.read_text().startswith("structure,family,kind")


def test_the_command_refuses_a_damaged_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.sqlite"
    path.write_bytes(b"no table" * 1000)
    assert main(["device", "calibrate", "-o", str(path)]) == 1
    assert "damaged" in capsys.readouterr().err

"""The search: objectives, budgets, trials that are kept, what is proposed, and a model tuned."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import metadef
from metadef.codegen.choices import choice_space
from metadef.diagnostics import MetadefError
from metadef.frontend.compiled_model import CompiledModel, compile_model
from metadef.frontend.options import empty_plan
from metadef.measure.accuracy import output_error
from metadef.measure.timing import Series
from metadef.plan.kernel_choice import KernelChoice
from metadef.plan.plan import SCHEDULE, Entry
from metadef.runtime.host import this_device
from metadef.tuning.budget import Budget, check_budget, parse_seconds
from metadef.tuning.calls import Calls, is_better, score, time_ratio
from metadef.tuning.objective import Cost, parse_objective
from metadef.tuning.proxy import rank
from metadef.tuning.result import Tuned
from metadef.tuning.search import Progress
from metadef.tuning.study import Trial, open_study
from metadef.tuning.tune import tune

COST = Cost(latency_ns=100.0, mean_ns=110.0, memory_bytes=1000, joules=2.0)


def test_weights_add_up_to_one() -> None:
    objective = parse_objective("latency=3, memory=1")
    assert objective.weights == {"latency": 0.75, "memory": 0.25}
    smaller = dataclasses.replace(COST, memory_bytes=500)
    assert objective.score(smaller, COST) == pytest.approx(0.875)
    assert parse_objective(objective.text) == objective
    throughput = parse_objective("throughput")
    assert [throughput.calls_at_once(8, threads) for threads in (1, 3, 16)] == [8, 2, 1]
    assert objective.calls_at_once(8, 1) == 1
    assert not objective.is_time and parse_objective("throughput").is_time


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("latencey", "unknown goal 'latencey'; did you mean 'latency'"),
        ("latency=fast", "expected a weight over 0, got 'fast'"),
        ("latency=0", "expected a weight over 0, got '0'"),
        ("latency=inf", "expected a weight over 0, got 'inf'"),
        ("latency,latency", "expected 'latency' once"),
    ],
)
def test_refuses_objectives(text: str, message: str) -> None:
    with pytest.raises(MetadefError, match=message):
        parse_objective(text)


def test_time_alone_is_compared_slice_by_slice() -> None:
    # The machine slowed down in the middle, for both alike.
    one = Calls(Series([[1.0, 1.0], [4.0, 4.0], [4.0, 4.0]]))
    other = Calls(Series([[0.9, 0.9], [3.6, 3.6], [3.6, 3.6]]))
    assert time_ratio(one, other) == pytest.approx(0.9)
    latency = parse_objective("latency")
    assert score(latency, one, other) == pytest.approx(0.9)
    # Three rounds may all be luck: one time in eight they are.
    assert not is_better(latency, one, other)
    assert is_better(latency, *(Calls(Series(2 * c.series.slices)) for c in (one, other)))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("10m", 600), ("1.5h", 5400)]
)
def test_reads_times(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "5 days"])
def test_refuses_times(text: str) -> None:
    with pytest.raises(MetadefError, match="expected a time such as 90s, 10m or 1h"):
        parse_seconds(text)


def test_refuses_budgets_too_small_for_a_trial() -> None:
    with pytest.raises(MetadefError, match="budget: expected at least 5 s"):
        check_budget(0.5, 10)
    with pytest.raises(MetadefError, match="trials: expected at least 1, got 0"):
        check_budget(60, 0)


def test_a_budget_gives_out_its_trials() -> None:
    budget = Budget(60, 7)
    assert [budget.take(5), budget.take(5), budget.take(5)] == [5, 2, 0]
    assert budget.is_over


def test_trials_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "of" / "studies.sqlite"
    good = Trial({"rows": 4, "tiles": [8, 16]}, 0.9, 0.02, predicted=0.8)
    bad = Trial({"rows": 5}, None, failed="signal SIGSEGV")
    with open_study(file, "here") as study:
        study.add("schedule a", good)
        study.add("schedule a", bad)
    with open_study(file, "here") as study:
        assert study.trials("schedule a") == [good, bad]
        assert study.trials("schedule b") == []
    with open_study(file, "another compiler") as study:
        assert study.trials("schedule a") == []


def test_a_study_is_held_by_one_process(tmp_path: Path) -> None:
    file = tmp_path / "studies.sqlite"
    with open_study(file, "here"):
        said = pytest.raises(MetadefError, match=f"process {os.getpid()} holds it; wait")
        with said, open_study(file, "here"):
            pass
    with open_study(file, "here"):
        pass


def test_a_killed_process_leaves_its_trials_and_no_lock(tmp_path: Path) -> None:
    file = tmp_path / "studies.sqlite"
    code = f"""
        import os, signal
        from metadef.tuning.study import Trial, open_study
        with open_study({str(file)!r}, "here") as study:
            study.add("a", Trial({{"rows": 1}}, 0.5))
            os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -signal.SIGKILL
    with open_study(file, "here") as study:
        assert [t.ratio for t in study.trials("a")] == [0.5]


def test_refuses_a_damaged_storage(tmp_path: Path) -> None:
    file = tmp_path / "studies.sqlite"
    file.write_bytes(b"this is no database" * 100)
    with (
        pytest.raises(MetadefError, match="expected trials that Optuna keeps"),
        open_study(file, ""),
    ):
        pass


def test_an_error_of_a_server_does_not_tell_the_password() -> None:
    with (
        pytest.raises(MetadefError, match="see that the server runs") as caught,
        open_study("postgresql+nosuchdriver://someone:secret@localhost/trials", ""),
    ):
        pass
    assert "secret" not in str(caught.value)
    assert "someone:***@localhost/trials" in str(caught.value)


def linear_space() -> str:
    model = metadef.compile(
        nn.Linear(96, 80), (torch.randn(50, 96),), plan=empty_plan(this_device())
    )
    return model.plannable_kernels()[0].source.text


def prefers_few_rows(choices: Sequence[KernelChoice]) -> list[float]:
    return [float(c.rows or 99) for c in choices]


def test_ranks_by_prediction_the_same_each_time() -> None:
    space = choice_space(linear_space())
    first = rank(space, prefers_few_rows, 40, seed=1)
    assert first == rank(space, prefers_few_rows, 40, seed=1)
    default, *others = first
    assert default.choice == space.default
    assert [r.predicted for r in others] == sorted(r.predicted for r in others)
    assert len(others) > 20 and all(space.is_legal(r.choice) for r in others)


def test_tunes_a_model_and_goes_on_later(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Linear(64, 96, bias=False).eval()  # nothing to fuse
    x = torch.randn(48, 64)
    seen: list[Progress] = []
    storage = tmp_path / "studies.sqlite"
    tuned = tune(
        model, (x,), threads=1, budget=300, trials=5, storage=storage, progress=seen.append
    )
    assert tuned.trials == 5 and tuned.kernels[0].trials == 5
    assert {p.layer for p in seen} == {"compile", "schedules", "whole model"}
    assert all(e.by == "search" and e.kind == SCHEDULE for e in tuned.plan.entries)
    assert tuned.plan.device.fingerprint == this_device().fingerprint()
    compiled = metadef.compile(model, (x,), threads=1, plan=tuned.plan)
    # Both sum in f32, in another order.
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)
    again = tune(model, (x,), threads=1, budget=300, trials=5, storage=storage)
    assert again.kernels[0].known == 5


def tuned_in(
    folder: Path, model: nn.Module, x: torch.Tensor, trials: int
) -> tuple[Tuned, list[Progress]]:
    """Tune with a storage of its own; return what it found and what it told."""
    seen: list[Progress] = []
    tuned = tune(
        *(model, (x,)),
        threads=1,
        budget=300,
        trials=trials,
        storage=folder / "s.sqlite",
        progress=seen.append,
    )
    return tuned, seen


def test_tunes_algorithms_of_convolutions(tmp_path: Path) -> None:
    model = nn.Conv2d(32, 32, 3, padding=1).eval()
    x = torch.randn(1, 32, 12, 12)
    tuned, seen = tuned_in(tmp_path, model, x, trials=3)
    algorithms = [p.last.choice for p in seen if p.layer == "algorithms" and p.last is not None]
    # The default is one of four ways, and the others are tried.
    assert len(algorithms) == 3 and {c["algorithm"] for c in algorithms} <= {"direct", "winograd"}
    compiled = metadef.compile(model, (x,), threads=1, plan=tuned.plan)
    # Winograd's transforms cost some digits.
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-3, atol=1e-4)


def test_tunes_fusion(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(32, 48), nn.GELU()).eval()
    x = torch.randn(16, 32)
    tuned, seen = tuned_in(tmp_path, model, x, trials=1)
    (last,) = [p for p in seen if p.last is not None]
    assert last.last is not None and last.last.choice == {"fused": False}
    assert last.subject.startswith("contraction add gelu")
    compiled = metadef.compile(model, (x,), threads=1, plan=tuned.plan)
    torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


def test_a_plan_that_does_not_compile_costs_one_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def compile_only_without_entries(*args: Any) -> CompiledModel:
        if args[4].plan.entries:
            raise MetadefError("a pass is at fault\nand this is how")
        return compile_model(*args)

    monkeypatch.setattr("metadef.tuning.search.compile_model", compile_only_without_entries)
    model, x = nn.Sequential(nn.Linear(32, 48), nn.GELU()).eval(), torch.randn(16, 32)
    tuned, seen = tuned_in(tmp_path, model, x, trials=1)
    assert [p.last.failed for p in seen if p.last is not None] == ["a pass is at fault"]
    assert not tuned.is_better
    # Parts that were found apart may not go together.
    scheduled = Entry(SCHEDULE, "0" * 32, {"rows": 2}, "search")
    monkeypatch.setattr("metadef.tuning.search._Search._schedules", lambda *_: ([scheduled], []))
    tuned, seen = tuned_in(tmp_path, model, x, trials=1)
    assert [p.layer for p in seen if p.last is not None and p.last.failed][-1] == "whole model"
    assert not tuned.is_better and not tuned.plan.entries


def test_searches_the_native_parts_between_what_torch_runs(tmp_path: Path) -> None:
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = (nn.Linear(*n, bias=False) for n in ((64, 96), (96, 64)))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.last(torch.dropout(self.first(x), 0.5, True))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch runs one op, as it says
        tuned = tune(
            *(Noisy(), (torch.randn(48, 64),)),
            threads=1,
            budget=300,
            trials=6,
            storage=tmp_path / "s.sqlite",
        )
    assert tuned.trials == 6 and sum(k.trials for k in tuned.kernels) == 6


def test_energy_needs_a_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    from metadef.device.spec import Energy
    from metadef.tuning import search

    monkeypatch.setattr(search, "energy_of", lambda kind: Energy("none", reason="no RAPL zones"))
    with pytest.raises(MetadefError, match="energy cannot be measured here: no RAPL zones"):
        tune(nn.ReLU(), (torch.zeros(4),), objective="energy")


def test_tunes_types_of_weights_under_a_limit(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(256, 192).eval(), torch.randn(1, 256)
    with torch.no_grad():
        model.weight[:, 0] = 4  # the others are left few of the steps of eight bits
    seen: list[Progress] = []
    tuned = tune(
        *(model, (x,)),
        threads=1,
        budget=300,
        objective="throughput",
        trials=3,
        storage=tmp_path / "s.sqlite",
        error_limit=5e-3,
        progress=seen.append,
    )
    last = [p.last for p in seen if p.layer == "algorithms, precision" and p.last is not None]
    failed = {t.choice["weights"]: t.failed for t in last}
    assert list(failed) == ["bf16", "f16", "i8"]
    assert failed["bf16"] is None and failed["f16"] is None
    assert "allowed are 5.0e-03" in str(failed["i8"])
    assert tuned.error is not None and tuned.error <= 5e-3
    compiled = metadef.compile(model, (x,), threads=1, plan=tuned.plan)
    assert output_error(compiled, model, (x,)) <= 5e-3


def test_refuses_no_limit() -> None:
    with pytest.raises(MetadefError, match="error_limit: expected over 0 and under 1, got 2"):
        tune(nn.ReLU(), (torch.zeros(4),), error_limit=2)

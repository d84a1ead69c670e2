"""`metadef COMMAND MODEL`: what it prints and its exit codes."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from threading import Barrier

import pytest
import torch

from metadef.cli import demo, numbers
from metadef.cli.main import main
from metadef.cli.models import Model
from metadef.measure.timing import Series, interleave, ratio

SOURCE = """
import torch

class Affine(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x, scale=1.0):
        return {"y": torch.relu(self.linear(x)) * scale}

class Random(torch.nn.Module):
    def forward(self, x):
        return x + torch.rand_like(x)

def affine():
    return Affine(), (torch.randn(2, 8),), {"scale": 2.0}

class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        return x + self.calls

def counter():
    return Counter(), (torch.ones(4),)

def noise():
    return Random(), (torch.ones(4),)

def number():
    return 3

def broken():
    raise ValueError("no such weights")
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which holds cli_models.py."""
    (tmp_path / "cli_models.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "cli_models", raising=False)
    return tmp_path


@pytest.fixture
def pt2(folder: Path) -> str:
    """Return the name of a saved program."""
    program = torch.export.export(torch.nn.Linear(8, 4), (torch.randn(2, 8),))
    torch.export.save(program, folder / "linear.pt2")
    return "linear.pt2"


def test_compile_prints_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "cli_models:affine"]) == 0
    out = capsys.readouterr().out
    assert "convert-torch-to-metadef" in out
    assert "1 native part(s)" in out


def test_compile_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "cli_models:affine", "--json", "--threads", "1"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["parts"] == 1
    assert report["compile_seconds"] > 0


def test_compile_keeps_the_ir(folder: Path) -> None:
    argv = ["compile", "cli_models:affine", "--print-ir-after-all", "--ir-dir", "dump"]
    assert main(argv) == 0
    assert any("infer-shapes" in file.name for file in (folder / "dump").rglob("*.mlir"))


def test_run_compares_with_eager(pt2: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", pt2]) == 0
    assert "right" in capsys.readouterr().out
    assert main(["run", "cli_models:affine"]) == 0
    assert "['y']" in capsys.readouterr().out


def test_run_fails_on_different_numbers(
    pt2: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "relative_error", lambda a, b: 2e-4)
    assert main(["run", pt2]) == 1
    assert "WRONG" in capsys.readouterr().out
    assert main(["run", pt2, "--tolerance", "1e-3"]) == 0


def test_run_starts_both_from_the_same_state(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "cli_models:counter"]) == 0
    assert main(["run", "cli_models:noise"]) == 0
    assert "metadef: warning: torch runs 1 op" in capsys.readouterr().err


def test_fallback_error_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "cli_models:noise", "--fallback", "error"]) == 1
    err = capsys.readouterr().err
    assert "rand_like" in err
    assert "Traceback" not in err


def test_check_counts_the_ops(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "cli_models:noise", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["counts"] == {"native": 1, "linalg": 0, "eager": 1}
    assert main(["check", "cli_models:noise"]) == 0
    assert "1 native, 0 linalg, 1 eager" in capsys.readouterr().out


def test_explain_shows_each_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cli_models:affine", "--json"]) == 0
    kernels = json.loads(capsys.readouterr().out)
    assert any("relu" in kernel["ops"] for kernel in kernels)
    assert all(kernel["runs"] >= 1 and kernel["ns"] >= 0 for kernel in kernels)
    assert any("cli_models.py:10" in line for kernel in kernels for line in kernel["lines"])
    assert main(["explain", "cli_models:affine"]) == 0
    assert "cli_models.py:10" in capsys.readouterr().out


def test_explain_shows_the_code_of_a_kernel(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "cli_models:affine", "--json"]) == 0
    name = json.loads(capsys.readouterr().out)[0]["kernel"]
    assert main(["explain", "cli_models:affine", "--assembly", name]) == 0
    code = capsys.readouterr().out
    assert code.startswith(f"/* kernel {name}: ") and ".loc" in code
    assert main(["explain", "cli_models:affine", "--assembly", "nothing"]) != 0


def test_bench_measures_both(pt2: str, capsys: pytest.CaptureFixture[str]) -> None:
    threads = torch.get_num_threads()
    assert main(["bench", pt2, "--threads", "1", "--rounds", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [m["program"] for m in found] == ["eager", "metadef"]
    assert all(0 < m["p50"] <= m["p90"] <= m["p99"] for m in found)
    assert found[1]["speed_up"] == 1.0
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["compile"], 2, "required: MODEL"),
        (["compile", "model.onnx"], 2, "expected a .pt2 file or package.module:factory"),
        (["compile", "cli_models:affine", "--threads", "0"], 2, "at least 1, got '0'"),
        (["bench", "cli_models:affine", "--against", "inducter"], 2, "did you mean 'inductor' or"),
        (["run", "absent.pt2"], 1, "cannot load 'absent.pt2': no such file"),
        (["run", "bad.pt2"], 1, "cannot load 'bad.pt2': expected a file written by"),
        (["run", "absent_module:f"], 1, "cannot import 'absent_module': ModuleNotFoundError"),
        (["run", "cli_models:afine"], 1, "has no function 'afine'; did you mean 'affine'"),
        (["run", "cli_models:number"], 1, "expected (module, args) or (module, args, kwargs), got"),
        (["run", "cli_models:broken"], 1, "ValueError: no such weights; from"),
        (["compile", "cli_models:affine", "--device", "absent.json"], 1, "absent.json"),
    ],
)
def test_a_mistake_is_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str], argv: list[str], code: int, said: str
) -> None:
    (folder / "bad.pt2").write_text("no archive")
    assert main(argv) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_demo_shows_both_latencies(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.show([_tiny], None, 2) == 0
    out = capsys.readouterr().out
    for title in ("nodes after plan-memory", "planned", "eager, median", "metadef, median"):
        assert title in out


def test_demo_fails_on_wrong_numbers(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numbers, "relative_error", lambda a, b: float("inf"))
    assert demo.show([_tiny], None, 1) == 1
    assert "tiny: result is wrong: float32 [2, 4]" in capsys.readouterr().out


def _tiny() -> Model:
    return Model("tiny", torch.nn.Linear(8, 4), (torch.randn(2, 8),))


@pytest.mark.parametrize(
    ("ours", "eager", "error"),
    [
        ([1.0, 2.0], [1.0, 4.0], 0.5),
        ([1.0, float("nan")], [1.0, float("nan")], 0.0),
        ([1.0, float("nan")], [1.0, 2.0], float("inf")),
        ([1.0, 2.0], [1.0, float("inf")], float("inf")),
        ([], [], 0.0),
    ],
)
def test_relative_error(ours: list[float], eager: list[float], error: float) -> None:
    assert numbers.relative_error(torch.tensor(ours), torch.tensor(eager)) == error


def test_results_of_another_form_are_wrong() -> None:
    x = torch.ones(2)
    assert not numbers.worst(numbers.differences((x, 1), [x, 1])).right
    assert not numbers.worst(numbers.differences((x, 1), (x, 2))).right
    assert not numbers.worst(numbers.differences(x, x.double())).right
    assert numbers.worst(numbers.differences({"a": (x, None)}, {"a": (x, None)})).right


def test_programs_are_timed_in_turn() -> None:
    calls: list[str] = []
    programs = {name: lambda name=name: calls.append(name) for name in ("a", "b")}
    series = interleave(programs, rounds=2, slice_seconds=0.0)
    assert "".join(calls) == "aaabbb" + "ab" + "ba"
    assert [len(part) for part in series["a"].slices] == [1, 1]


def test_programs_are_timed_until_each_ran_long_enough() -> None:
    programs = {"short": partial(time.sleep, 0.001), "long": partial(time.sleep, 0.004)}
    short, long = interleave(programs, rounds=2, seconds=0.008, slice_seconds=0.0).values()
    assert sum(short.calls) >= 0.008
    assert 2 <= len(short.slices) == len(long.slices) <= 8


def test_programs_are_timed_several_calls_at_once() -> None:
    meet = Barrier(2, timeout=60)
    series = interleave({"a": meet.wait}, rounds=2, slice_seconds=0.0, at_once=2)["a"]
    assert [len(part) for part in series.slices] == [2, 2]
    assert (
        Series([[4.0, 4.0], [2.0]], at_once=2).throughput
        == 2 * Series([[4.0, 4.0], [2.0]]).throughput
    )


def test_ratio_is_over_1_where_the_other_is_faster() -> None:
    slow, quick = Series([[4.0, 4.0], [2.0]]), Series([[2.0], [1.0, 1.0, 1.0]])
    assert ratio(slow, quick) == 2.0
    assert slow.median == 4.0
    assert [slow.percentile(p) for p in (1, 50, 100)] == [2.0, 4.0, 4.0]
    assert quick.throughput == 4 / 5

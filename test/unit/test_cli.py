"""`metadef COMMAND MODEL`: what it prints and its exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from metadef.cli import demo
from metadef.cli.main import main
from metadef.cli.models import Model

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


def test_run_fails_on_different_numbers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "cli_models:noise"]) == 1
    captured = capsys.readouterr()
    assert "WRONG" in captured.out
    assert "metadef: warning: torch runs 1 op" in captured.err


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
        (["bench", "cli_models:affine", "--against", "inducter"], 2, "did you mean 'inductor'?"),
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
    def tiny() -> Model:
        return Model("tiny", torch.nn.Linear(8, 4), (torch.randn(2, 8),))

    assert demo.show([tiny], None, 2) == 0
    out = capsys.readouterr().out
    for title in ("nodes after plan-memory", "planned", "eager, median", "metadef, median"):
        assert title in out


@pytest.mark.filterwarnings("ignore:torch runs")
def test_demo_fails_on_wrong_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    class Restless(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return x * torch.rand_like(x)

    assert demo.show([lambda: Model("restless", Restless(), (torch.ones(4),))], None, 1) == 1
    assert "restless: result is wrong" in capsys.readouterr().out

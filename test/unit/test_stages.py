"""The IR of a model after each stage: every stage is there, and the model's lines are in it."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import metadef
from metadef.codegen.stages import ASSEMBLY, LLVM_IR, kernel_stages
from metadef.diagnostics import MetadefError
from metadef.frontend.compiled_model import CompiledModel
from metadef.frontend.stages import IMPORT
from metadef.pipelines import passes_of, stage_names

FRONT = [IMPORT, *stage_names(passes_of("front"))]
PASSES = [stage for stage in kernel_stages() if stage not in (LLVM_IR, ASSEMBLY)]


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        y = torch.relu(y)
        return y.softmax(-1)


def _line(text: str) -> int:
    """Return the number of the line of this file that starts with `text`."""
    lines = Path(__file__).read_text().splitlines()
    return next(i for i, line in enumerate(lines, start=1) if line.strip().startswith(text))


LINEAR, RELU, SOFTMAX = map(_line, ("y = self.linear(x)", "y = torch.relu(y)", "return y.softmax"))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METADEF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return metadef.compile(Small().eval(), (torch.ones(16, 32),), threads=1)


def _lines_in_mlir(text: str) -> set[int]:
    return {int(line) for line in re.findall(rf'{Path(__file__).name}":(\d+)', text)}


@pytest.mark.parametrize("stage", [*FRONT, *PASSES])
def test_lines_of_the_model_are_locations(compiled: CompiledModel, stage: str) -> None:
    assert {LINEAR, RELU, SOFTMAX} <= _lines_in_mlir(compiled.mlir(stage))


def test_llvm_ir_names_lines(compiled: CompiledModel) -> None:
    text = compiled.mlir(LLVM_IR)
    assert f'!DIFile(filename: "{Path(__file__).name}"' in text
    assert {LINEAR, SOFTMAX} <= {int(n) for n in re.findall(r"!DILocation\(line: (\d+)", text)}


def test_assembly_names_lines(compiled: CompiledModel) -> None:
    text = compiled.mlir(ASSEMBLY)
    assert {LINEAR, SOFTMAX} <= {int(n) for n in re.findall(r"\.loc\s+\d+ (\d+)", text)}


def test_every_kernel_is_in_the_text_of_a_kernel_stage(compiled: CompiledModel) -> None:
    names = {kernel.name for kernel in compiled.kernels}
    for stage in (PASSES[0], PASSES[-1], LLVM_IR, ASSEMBLY):
        headings = re.findall(
            r"^\S+ kernel (\w+): .*test_stages.py:\d+", compiled.mlir(stage), re.M
        )
        assert len(headings) == len(names) and set(headings) == names


def test_one_kernel_for_two_places_tells_both() -> None:
    def twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first = x.softmax(-1)
        second = (x @ x).softmax(-1)
        return first, second

    text = metadef.compile(twice, (torch.ones(4, 4),)).mlir("bufferize")
    (heading,) = re.findall(r"// kernel softmax_0: (.*)", text)
    for line in map(_line, ("first = x.softmax", "second = (x @ x)")):
        assert f"test_stages.py:{line}" in heading


class Folded(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        z = self.conv(x)
        return self.norm(z)


@pytest.mark.parametrize("stage", ["fold-batch-norm", "plan-memory", "lower-to-llvm"])
def test_an_op_that_was_two_has_the_lines_of_both(stage: str) -> None:
    compiled = metadef.compile(Folded().eval(), (torch.ones(1, 3, 9, 9),))
    lines = _lines_in_mlir(compiled.mlir(stage))
    assert set(map(_line, ("z = self.conv(x)", "return self.norm(z)"))) <= lines


@pytest.mark.filterwarnings("ignore::metadef.frontend.partition.MetadefWarning")
def test_native_parts_between_ops_of_torch(tmp_path: Path) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return torch.fft.rfft(x * 2).abs() + 1

    compiled = metadef.compile(
        model, (torch.ones(4),), threads=1, print_ir_after_all=True, ir_dir=tmp_path
    )
    kernels = [kernel.name for kernel in compiled.kernels]
    parts = {name.partition(".")[0] for name in kernels}
    assert len(parts) == 2 and {folder.name for folder in tmp_path.iterdir()} == parts
    text = compiled.mlir("bufferize")
    assert re.findall(r"^// kernel (\S+):", text, re.M) == kernels
    for part, _, name in (kernel.partition(".") for kernel in kernels):
        assert (tmp_path / part / "kernels" / name / f"02-{PASSES[1]}.mlir").is_file()


def test_a_cached_model_has_the_same_stages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    x = torch.ones(16, 32)
    first, second = (metadef.compile(Small().eval(), (x,), threads=1) for _ in range(2))
    assert second.report().kernels_from_cache == second.report().kernels
    for stage in (IMPORT, "plan-memory", "vectorize"):
        assert first.mlir(stage) == second.mlir(stage)


def test_one_kernel_alone(compiled: CompiledModel) -> None:
    name = compiled.kernels[-1].name
    text = compiled.mlir("bufferize", kernel=name)
    assert text.startswith(f"// kernel {name}: ") and text.count("// kernel") == 1
    with pytest.raises(MetadefError, match=f"no kernel '{name}x'; did you mean '{name}'"):
        compiled.mlir("bufferize", kernel=f"{name}x")
    with pytest.raises(MetadefError, match="'plan-memory' is one of the whole model"):
        compiled.mlir("plan-memory", kernel=name)


def test_near_names_of_stages(compiled: CompiledModel) -> None:
    with pytest.raises(MetadefError, match="no stage 'vectorise'; did you mean 'vectorize'"):
        compiled.mlir("vectorise")


def test_files_of_kernels_are_numbered(compiled: CompiledModel, tmp_path: Path) -> None:
    metadef.compile(
        Small().eval(), (torch.ones(16, 32),), threads=1, print_ir_after_all=True, ir_dir=tmp_path
    )
    names = {kernel.name for kernel in compiled.kernels}
    assert {folder.name for folder in (tmp_path / "kernels").iterdir()} == names
    expected = [f"{i:02}-{name}.mlir" for i, name in enumerate(PASSES, start=1)]
    for name in names:
        folder = tmp_path / "kernels" / name
        assert sorted(file.name for file in folder.iterdir()) == expected
        assert f"@{name}(" in (folder / expected[-1]).read_text()


def test_kernels_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    metadef.compile(nn.ReLU(), (torch.ones(2),), print_ir_after_all=True)
    printed = capsys.readouterr().err
    for stage in (*FRONT[1:], *PASSES):
        assert f"IR Dump After {stage.partition('#')[0]}" in printed


def test_assembly_of_code_without_a_source_file() -> None:
    names: dict[str, Any] = {"torch": torch}
    exec("def model(x): return torch.nn.functional.gelu(x)", names)
    compiled = metadef.compile(names["model"], (torch.randn(4, 64),))
    assert "ret" in compiled.mlir("assembly", compiled.kernels[-1].name)

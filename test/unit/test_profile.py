"""Profiles: their numbers agree with each other, and their files are what others can read."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import metadef
from metadef.cli.main import main
from metadef.device.figures import Figure, Figures
from metadef.diagnostics import InputError, MetadefError, MetadefWarning
from metadef.frontend.compiled_model import CompiledModel
from metadef.measure import limits as measuring
from metadef.profiling.profile import Profile
from metadef.profiling.roofline_page import roofline_page
from metadef.profiling.trace import trace

BATCH, WIDE, NARROW = 8, 64, 32


def device_limits(spec: object, threads: int, cache: object, **options: object) -> Figures:
    """Return limits that nobody had to wait for."""
    made = [Figure("flops", e, 1e10 * t, t, 0.2, 3) for e in ("f32", "f64") for t in (1, threads)]
    for level in ("l1", "l2", "l3", "memory"):
        made += [Figure("read", level, 1e12 * t, t, 0.0, 3) for t in (1, threads)]
    return Figures(tuple(made), "2026-01-01")


@pytest.fixture(autouse=True)
def no_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "device_limits", device_limits)


class Perceptron(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(WIDE, NARROW)

    def forward(self, x: Tensor) -> Tensor:
        y = self.fc(x)
        return torch.softmax(y, 1)


class Sampler(nn.Module):
    """Draws numbers, which torch does itself, between two native parts."""

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2 + 1
        y = y + torch.rand_like(y)
        return torch.tanh(y) - 1


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        return x + self.calls


def perceptron(threads: int) -> CompiledModel:
    batch = torch.export.Dim("B", max=64)
    return metadef.compile(
        Perceptron().eval(),
        (torch.randn(BATCH, WIDE),),
        dynamic_shapes=({0: batch},),
        threads=threads,
    )


def profiled(threads: int, batch: int = BATCH) -> Profile:
    return perceptron(threads).profile((torch.randn(batch, WIDE),), rounds=6)


def sampler(threads: int = 2) -> tuple[CompiledModel, tuple[Tensor]]:
    args = (torch.randn(64, 64),)
    with pytest.warns(MetadefWarning):
        return metadef.compile(Sampler(), args, threads=threads), args


def check_sums(profile: Profile) -> None:
    """Check that kernels add up to less than the call, and dispatches to the kernels."""
    assert 0 < profile.kernel_ns <= profile.total_ns
    assert profile.untimed_ns > 0
    dispatched = sum(d.ns for d in profile.dispatches)
    assert dispatched == pytest.approx(profile.kernel_ns)
    assert sum(k.runs for k in profile.kernels) == len(profile.dispatches)
    for kernel in profile.kernels:
        threads = len(kernel.thread_ns)
        assert threads == len(kernel.wait_ns) and 1 <= threads <= profile.threads
        together = sum(kernel.thread_ns) + sum(kernel.wait_ns)
        assert together / threads == pytest.approx(kernel.ns)
        assert 0 < kernel.balance <= 1
    assert [k.ns for k in profile.kernels] == sorted((k.ns for k in profile.kernels), reverse=True)


@pytest.mark.parametrize("threads", [1, 2])
def test_times_add_up(threads: int) -> None:
    profile = profiled(threads)
    check_sums(profile)
    assert profile.rounds == 6
    assert all(len(k.thread_ns) == threads for k in profile.kernels)


@pytest.mark.parametrize("batch", [8, 3])
def test_flops_and_bytes_are_those_of_the_call(batch: int) -> None:
    profile = profiled(1, batch)
    assert profile.symbols == {"B": batch}
    (product,) = [k for k in profile.kernels if "contraction" in k.ops]
    assert product.ops[-2:] == ("contraction", "add")
    assert product.flops == batch * NARROW * (2 * WIDE + 1)
    assert product.operations == {"f32": product.flops}
    x, weights, y = batch * WIDE, WIDE * NARROW + NARROW, batch * NARROW
    assert product.bytes == 4 * (x + weights + y)
    assert sum(product.traffic.values()) == product.bytes
    assert product.flops_per_second == pytest.approx(product.flops / product.ns * 1e9)
    assert product.bound == "f32"
    assert product.limit_ns == pytest.approx(product.flops / 1e10 * 1e9)


def test_a_kernel_has_its_ops_and_source_lines() -> None:
    profile = profiled(1)
    (product,) = [k for k in profile.kernels if "contraction" in k.ops]
    here = Path(__file__)
    line = here.read_text().splitlines().index("        y = self.fc(x)") + 1
    assert f"{here}:{line}" in product.lines
    assert product.places[0].startswith(f"{here.name}:{line}")


def test_torchs_ops_are_told_apart() -> None:
    model, args = sampler()
    profile = model.profile(args, rounds=4)
    check_sums(profile)
    (random,) = [k for k in profile.kernels if k.kind == "torch"]
    assert "rand" in random.name and random.runs == 1
    assert random.bound == "" and random.of_limit == 0
    assert random.places[0].startswith("test_profile.py:")
    native = [k for k in profile.kernels if k.kind == "native"]
    assert native and all(k.name.startswith("native_") for k in native)
    assert [d.name for d in profile.dispatches].index(random.name) not in (
        0,
        len(profile.dispatches) - 1,
    )


@pytest.mark.parametrize(
    ("function", "names"),
    [(lambda x: x, []), (torch.rand_like, ["aten.rand_like"]), (torch.relu, ["relu_0"])],
)
@pytest.mark.filterwarnings("ignore::metadef.frontend.partition.MetadefWarning")
def test_a_model_of_nothing_of_torch_alone_and_on_no_elements(
    function: Any, names: list[str]
) -> None:
    args = (torch.ones(0, 4),)
    profile = metadef.compile(function, args, threads=2).profile(args, rounds=1)
    assert [k.name for k in profile.kernels] == names
    json.dumps([profile.as_dict(), trace([profile], "m")])
    assert "</html>" in roofline_page([profile], "m")


def test_nothing_is_written_to_the_model() -> None:
    model = Counter()
    compiled = metadef.compile(model, (torch.ones(4),))
    before = model.calls.item()
    compiled.profile((torch.ones(4),), rounds=2)
    assert model.calls.item() == before
    compiled(torch.ones(4))
    assert model.calls.item() == before + 1


def test_without_limits_nothing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "device_limits", None)
    profile = perceptron(1).profile((torch.randn(8, WIDE),), rounds=1, against_limits=False)
    assert profile.limits is None
    assert {k.bound for k in profile.kernels} == {""}
    check_sums(profile)
    assert "<svg" in roofline_page([profile], "m")


@pytest.mark.parametrize("rounds", [0, -1, 2.5, True])
def test_refuses_a_strange_number_of_rounds(rounds: Any) -> None:
    with pytest.raises(MetadefError, match="rounds: expected an int of at least 1, got"):
        perceptron(1).profile((torch.randn(8, WIDE),), rounds=rounds)


def test_refuses_arguments_of_another_kind() -> None:
    with pytest.raises(InputError):
        perceptron(1).profile((torch.randn(8, WIDE + 1),))


def test_plain_data_is_json() -> None:
    profile = profiled(2)
    data = json.loads(json.dumps(profile.as_dict()))
    assert data["threads"] == 2 and data["symbols"] == {"B": BATCH}
    shares = [kernel["share"] for kernel in data["kernels"]]
    assert 0 < sum(shares) <= 1
    assert set(data["limits"]) == {"date", "flops", "read"}
    assert "round" not in data


@pytest.mark.parametrize("threads", [1, 2])
def test_a_trace_nests_in_the_call(threads: int) -> None:
    model, args = sampler(threads)
    profile = model.profile(args, rounds=3)
    made = json.loads(json.dumps(trace([profile], "sampler")))
    events = [e for e in made["traceEvents"] if e["ph"] == "X"]
    names = [e for e in made["traceEvents"] if e["ph"] == "M"]
    assert {e["ph"] for e in made["traceEvents"]} == {"X", "M"}
    assert len([e for e in names if e["name"] == "thread_name"]) == threads
    (call,) = [e for e in events if e["name"] == "call"]
    assert call["ts"] == 0
    for thread in range(threads):
        own = [e for e in events if e["tid"] == thread and e is not call]
        assert [e["ts"] for e in own] == sorted(e["ts"] for e in own)
        for event, following in zip(own, own[1:], strict=False):
            assert event["ts"] + event["dur"] <= following["ts"] + 1e-6
        assert own[0]["ts"] >= 0
        assert own[-1]["ts"] + own[-1]["dur"] <= call["dur"] + 1e-6
    kernels = [e["name"] for e in events if e["tid"] == 0 and e["cat"] in ("native", "torch")]
    assert kernels == [d.name for d in profile.dispatches]
    assert all("test_profile.py:" in e["args"]["from"] for e in events if e["cat"] == "native")


def test_a_page_needs_nothing_else() -> None:
    page = roofline_page([profiled(1), profiled(2)], "a <model> & more")
    assert "a &lt;model&gt; &amp; more" in page
    assert not re.search(r"https?:|src=|href=|@import|url\(|<script", page)
    plots = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(plots) == 2
    for plot in plots:
        root = ET.fromstring(plot)
        width, height = (float(n) for n in root.attrib["viewBox"].split()[2:])
        circles = root.findall("circle")
        assert circles
        for circle in circles:
            assert 0 <= float(circle.attrib["cx"]) <= width
            assert 0 <= float(circle.attrib["cy"]) <= height
            assert circle.find("title") is not None
    ET.fromstring(re.search(r"<body>.*</body>", page, re.DOTALL)[0])  # type: ignore[index]


SOURCE = """
import torch

def linear():
    return torch.nn.Linear(8, 4).eval(), (torch.randn(2, 8),)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "profiled_models.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "profiled_models", raising=False)
    return "profiled_models:linear"


def test_the_command_prints_a_table_for_each_number_of_threads(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", model, "--threads", "1,2", "--rounds", "2"]) == 0
    out = capsys.readouterr().out
    assert "1 thread(s)" in out and "2 thread(s)" in out
    assert "contraction_add" in out and "linear.py:" in out
    assert "2 of 6 limits were measured in noise" in " ".join(out.split())


def test_the_command_writes_json_trace_and_page(
    model: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = ["--trace", "trace.json", "--roofline", "roofline.html"]
    assert main(["profile", model, "--json", "--rounds", "2", "--threads", "1,2", *files]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [p["threads"] for p in data["profiles"]] == [1, 2]
    (kernel,) = data["profiles"][0]["kernels"]
    assert kernel["flops"] == 2 * 4 * (2 * 8 + 1)
    assert kernel["ops"][-2:] == ["contraction", "add"]
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {e["pid"] for e in events} == {1, 2}
    assert "</html>" in (tmp_path / "roofline.html").read_text()


def test_the_command_prints_the_code_of_a_kernel(
    model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", model, "--asm", "contraction_add_0"]) == 0
    assert "ret" in capsys.readouterr().out
    assert main(["profile", model, "--asm", "contraction_ad_0"]) == 1
    assert "did you mean 'contraction_add_0'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--rounds", "0"], 2, "at least 1"),
        (["--threads", "two"], 2, "at least 1"),
        (["--rounds", "1", "--trace", "no/such/folder.json"], 1, "No such file"),
    ],
)
def test_a_mistake_is_one_clear_line(
    model: str, options: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["profile", model, *options]) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1

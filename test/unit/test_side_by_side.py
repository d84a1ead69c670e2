"""Programs measured side by side: a process each, checked against eager before they are timed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from metadef.cli import peers
from metadef.cli.bench_process import LIMITS
from metadef.cli.models import Model
from metadef.cli.side_by_side import Job, Measured, measure, ratio
from metadef.cli.usage import UsageError
from metadef.diagnostics import MetadefError

SOURCE = """
import os
import torch

class Scaled(torch.nn.Module):
    def forward(self, x, y):
        return x * 2, y + 1

class Moody(torch.nn.Module):
    '''Gives other numbers in each process.'''
    def __init__(self):
        super().__init__()
        with open("loads", "a") as file:
            file.write("+")
        self.loads = os.path.getsize("loads")

    def forward(self, x):
        return x + self.loads

class Refusing(torch.nn.Module):
    def forward(self, x):
        raise ValueError("not today")

def scaled():
    return Scaled(), (torch.ones(4, 3), torch.ones(2))

def moody():
    return Moody(), (torch.ones(4),)

def refusing():
    return Refusing(), (torch.ones(4),)
"""

EAGER, OURS = Job("eager", 1), Job("metadef", 1)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the name of a module in the current folder."""
    (tmp_path / "bench_models.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    return "bench_models"


def test_each_job_is_measured_in_each_round(models: str) -> None:
    jobs = [EAGER, OURS, Job(LIMITS, 1)]
    eager, ours, limits = measure(
        f"{models}:scaled", jobs, rounds=2, slice_seconds=0.01, traffic=1 << 20
    )
    assert eager.failed is None and ours.failed is None
    assert list(eager.slices) == list(ours.slices) == [0, 1]
    assert ours.built["error"] == 0
    assert 0 < ours.percentile(50) <= ours.percentile(99)
    assert ours.run_peak_mib > 0 and ours.built["compile_seconds"] > 0
    assert ratio(eager, eager) == 1
    assert all(found["fma"] > 1e9 and found["copy"] > 1e8 for found in limits.limits.values())
    assert list(limits.limits) == [0, 1]


def test_wrong_numbers_are_not_timed(models: str) -> None:
    eager, again = measure(f"{models}:moody", [EAGER, OURS], rounds=1, slice_seconds=0.01)
    assert eager.failed is None and len(eager.slices) == 1
    assert again.failed is not None and "wrong numbers in [0]" in again.failed
    assert not again.slices


def test_a_program_that_fails_says_why(models: str) -> None:
    (eager,) = measure(f"{models}:refusing", [EAGER], rounds=1)
    assert eager.failed == "ValueError: not today"


def test_a_model_that_is_not_there_is_an_error(models: str) -> None:
    with pytest.raises(MetadefError, match="has no function 'scald'; did you mean 'scaled'"):
        measure(f"{models}:scald", [EAGER], rounds=1)
    with pytest.raises(UsageError, match="expected a .pt2 file"):
        measure("model.onnx", [EAGER], rounds=1)


def test_ratio_is_of_the_rounds_that_both_were_in() -> None:
    slow = Measured(EAGER, slices={0: [4.0, 4.0], 1: [8.0], 2: [100.0]})
    fast = Measured(OURS, slices={0: [2.0], 1: [2.0, 1.0, 2.0]})
    assert ratio(slow, fast) == 3
    assert fast.ms == 2


def test_a_peer_that_is_not_installed_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = peers.Peer(peers.PEERS["eager"].build, {"no.such": "no-such"}, "")
    monkeypatch.setattr(peers, "PEERS", {"absent": absent})
    with pytest.raises(MetadefError, match=r"needs what is not installed: no-such; pip install no"):
        peers.peers_named("absent")


class Several(nn.Module):
    """Takes a keyword and a nested argument; gives a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(
        self, x: torch.Tensor, pair: tuple[torch.Tensor, torch.Tensor], *, bias: torch.Tensor
    ) -> dict[str, torch.Tensor]:
        return {"sum": self.linear(x) + bias, "product": pair[0] * pair[1]}


@pytest.mark.parametrize("name", [name for name in peers.PEERS if name != "inductor-max"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_peer_gives_what_eager_gives(name: str, dynamic: bool) -> None:
    if any(not peers._is_installed(module) for module in peers.PEERS[name].packages):
        pytest.skip("not installed")
    torch.manual_seed(0)
    pair = (torch.randn(3, 5), torch.randn(3, 5))
    kwargs = {"bias": torch.randn(4)}
    batch = torch.export.Dim("batch", min=1, max=16)
    shapes = {"x": {0: batch}, "pair": (None, None), "bias": None}
    model = Model(
        "several",
        Several().eval().requires_grad_(False),
        (torch.randn(3, 8), pair),
        kwargs,
        dynamic_shapes=shapes if dynamic else None,
        more_args=((torch.randn(7, 8), pair),) if dynamic else (),
    )
    with torch.no_grad():
        bind = peers.build_peer(name, model, threads=1)
        for args in model.calls:
            found = peers.tensors(bind(args, kwargs)())
            expected = peers.tensors(model.eager(*args, **kwargs))
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)

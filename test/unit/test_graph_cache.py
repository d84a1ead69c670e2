"""The front passes' result is kept by the graph's content: found again, and never for another."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import metadef
from metadef.device.probe import probe
from metadef.frontend.export import export
from metadef.frontend.graph_cache import (
    Front,
    compress_texts,
    find_front,
    graph_key,
    keep_front,
)
from metadef.runtime.back_graph import BackGraph, Plan
from metadef.runtime.cache import Cache
from metadef.symbolic import Dim


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))


def _model(inner: int = 8) -> nn.Module:
    return nn.Sequential(nn.Linear(4, inner), nn.ReLU(), nn.Linear(inner, 4)).eval()


def _ran_front(compiled: object) -> bool:
    return "check" in [stage.name for stage in compiled.report().stages]  # type: ignore[attr-defined]


def test_second_compilation_runs_no_front_pass_and_has_its_own_weights() -> None:
    x = torch.randn(3, 4)
    first, second = _model(), _model()
    assert _ran_front(metadef.compile(first, (x,)))
    compiled = metadef.compile(second, (x,))
    assert not _ran_front(compiled)
    torch.testing.assert_close(compiled(x), second(x))
    assert "metadef.contraction" in compiled.mlir("infer-shapes")
    nodes = {stage.name: stage.nodes for stage in compiled.report().stages}
    assert nodes["import"] and nodes["plan-memory"]


def _key(model: Callable[..., object], x: torch.Tensor) -> str | None:
    with torch.no_grad():
        return graph_key(export(model, (x,)).graph, probe())


def test_keys_tell_shapes_dtypes_and_constants_apart() -> None:
    x = torch.randn(3, 4)
    keys = [
        _key(_model(), x),
        _key(_model(9), x),
        _key(_model(), torch.randn(2, 4)),
        _key(_model().double(), x.double()),
        _key(lambda x: x * 2.0, x),
        _key(lambda x: x * 3.0, x),
        _key(lambda x: x * 3, x),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert _key(_model(), x) == keys[0]


def test_tied_weights_are_another_graph() -> None:
    class Pair(nn.Module):
        def __init__(self, tied: bool) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
            if tied:
                self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.b(self.a(x))
            return y

    x = torch.randn(2, 4)
    assert _key(Pair(tied=True), x) != _key(Pair(tied=False), x)


def test_a_damaged_entry_is_compiled_again(tmp_path: Path) -> None:
    x = torch.randn(3, 4)
    model = _model()
    metadef.compile(model, (x,))
    for file in tmp_path.rglob("*.entry"):
        content = file.read_bytes()
        file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    compiled = metadef.compile(model, (x,))
    assert _ran_front(compiled)
    torch.testing.assert_close(compiled(x), model(x))


def test_a_front_without_a_key_is_not_kept(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    graph = BackGraph((), (), (), (), {}, Dim.of(0), Dim.of(0))
    front = Front(Plan(graph), (("import", 3),), compress_texts("source", "back"))
    keep_front(cache, None, front)
    assert find_front(cache, None) is None and not list(tmp_path.rglob("*.entry"))
    keep_front(cache, "0" * 64, front)
    found = find_front(cache, "0" * 64)
    assert found == front
    assert (found.source, found.back) == ("source", "back")


def _from_ahead(compiled: object) -> bool:
    seconds = {s.name: s.seconds for s in compiled.report().stages}  # type: ignore[attr-defined]
    return seconds["program"] == 0


def test_the_program_of_a_known_model_is_loaded_during_export() -> None:
    x = torch.randn(3, 4)
    assert not _from_ahead(metadef.compile(_model(), (x,)))
    model = _model()
    compiled = metadef.compile(model, (x,))
    assert _from_ahead(compiled)
    torch.testing.assert_close(compiled(x), model(x))
    assert compiled.report().kernels_from_cache == compiled.report().kernels
    assert "metadef.contraction" in compiled.mlir("infer-shapes")


def test_tied_weights_are_found_ahead_under_either_name() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.b, self.a = nn.Linear(4, 4), nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.b(self.a(x))
            return y

    x = torch.randn(2, 4)
    metadef.compile(Tied(), (x,))
    model = Tied()
    compiled = metadef.compile(model, (x,))
    torch.testing.assert_close(compiled(x), model(x))


def test_a_model_that_only_looks_like_a_known_one_is_not_taken_for_it() -> None:
    class Scaled(nn.Module):
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.linear, self.scale = nn.Linear(4, 4), scale

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y: torch.Tensor = self.linear(x) * self.scale
            return y

    x = torch.randn(2, 4)
    for scale in (2.0, 3.0, 2.0, 2.0):
        model = Scaled(scale)
        compiled = metadef.compile(model, (x,))
        torch.testing.assert_close(compiled(x), model(x))
    assert _from_ahead(compiled)


def test_a_weight_that_is_no_dense_row_major_tensor_is_not_taken_from_ahead() -> None:
    x = torch.randn(3, 4)
    for _ in range(2):
        model = nn.Linear(4, 6)
        model.weight = nn.Parameter(torch.randn(4, 6).t())
        compiled = metadef.compile(model, (x,))
        torch.testing.assert_close(compiled(x), model(x))
    assert not _from_ahead(compiled)

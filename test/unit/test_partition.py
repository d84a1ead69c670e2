"""Ops that nobody lowers run in torch: who runs what, where the graph is split, what is said."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import metadef
from metadef.diagnostics import MetadefWarning, UnsupportedOpError
from metadef.frontend.export import export
from metadef.frontend.partition import partition
from metadef.frontend.support import Support


class Mixed(nn.Module):
    """Native, eager for want of a lowering, eager for its random numbers, and data-dependent."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> Any:
        y = self.layer(x).relu()
        z = torch.linalg.inv(y @ y.T + torch.eye(4))
        places = torch.nonzero(y > 0.1)
        noise = torch.rand(4)
        return (z @ y + noise).tanh(), (places * 2).sum(0), places.shape[0] * 2


def _verdicts(model: Any, *args: Any) -> dict[str, tuple[str, str]]:
    graph = export(model, args).graph
    found = Support(graph.symbols, lambda module: "untried").verdicts(graph.module.graph)
    return {v.op: (v.kind, v.reason) for v in found.values()}


def test_results_that_nobody_reads_need_no_lowering() -> None:
    def model(indices: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding_bag(indices, weight, mode="max")

    args = torch.tensor([[0, 2], [1, 1]]), torch.randn(4, 3)
    assert metadef.check(model, args).counts.get("eager", 0) == 0


def test_verdicts_say_who_and_why() -> None:
    found = _verdicts(Mixed(), torch.ones(4, 4))
    assert found["aten.linear"] == ("native", "")
    assert found["aten.linalg_inv"][0] == "eager"
    assert found["aten.nonzero"] == ("eager", "the size of its result depends on the data")
    assert found["aten.rand"] == ("eager", "draws from torch's random generator")


def test_complex_tensors_are_for_torch() -> None:
    found = _verdicts(lambda x: torch.fft.fft(x).abs(), torch.ones(4))
    assert all(kind == "eager" for kind, _ in found.values())


def test_attention_is_random_only_with_dropout() -> None:
    def model(q: torch.Tensor, p: float) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=p)

    q = torch.ones(1, 2, 3, 4)
    assert _verdicts(model, q, 0.0)["aten.scaled_dot_product_attention"][0] != "eager"
    assert _verdicts(model, q, 0.5)["aten.scaled_dot_product_attention"][0] == "eager"


def test_splits_around_eager_ops_and_keeps_the_original() -> None:
    graph = export(Mixed(), (torch.ones(4, 4),)).graph
    before = str(graph.module.graph)
    verdicts = Support(graph.symbols, lambda module: "untried").verdicts(graph.module.graph)
    mixed, parts = partition(graph, verdicts)
    assert str(graph.module.graph) == before
    called = [str(n.target) for n in mixed.module.graph.nodes if n.op == "call_function"]
    assert "aten.linear.default" not in called and "aten.linalg_inv.default" in called
    assert len(parts) == 2
    weights = {s.name for part in parts.values() for s in part.source_of.values() if s.name}
    assert weights == {"layer.weight", "layer.bias"}


@pytest.fixture(scope="module")
def compiled() -> tuple[nn.Module, Any, list[str]]:
    torch.manual_seed(0)
    model = Mixed()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = metadef.compile(model, (torch.randn(4, 4),))
    said = [str(w.message) for w in caught if w.category is MetadefWarning]
    return model, result, said


def test_mixed_graphs_give_the_right_numbers(compiled: tuple[nn.Module, Any, list[str]]) -> None:
    model, result, _ = compiled
    for seed in range(3):
        torch.manual_seed(seed)
        x = torch.randn(4, 4)
        state = torch.get_rng_state()
        expected = model(x)
        torch.set_rng_state(state)
        got = result(x)
        torch.testing.assert_close(got[0], expected[0], rtol=1e-4, atol=1e-4)
        assert torch.equal(got[1], expected[1]) and got[2] == expected[2]


def test_one_warning_names_op_and_line(compiled: tuple[nn.Module, Any, list[str]]) -> None:
    _, result, said = compiled
    (message,) = said
    line = Mixed.forward.__code__.co_firstlineno + 2
    assert "'aten.linalg_inv'" in message and f"test_partition.py:{line}" in message
    assert {v.op for v in result.report().fallbacks} >= {"aten.linalg_inv", "aten.rand"}
    assert "eager: 'aten.nonzero'" in str(result.report())


def test_fallback_error_refuses() -> None:
    with pytest.raises(UnsupportedOpError, match="op 'aten.linalg_inv' from .*test_partition.py"):
        metadef.compile(Mixed(), (torch.ones(4, 4),), fallback="error")


def test_check_tells_beforehand() -> None:
    found = metadef.check(Mixed(), (torch.ones(4, 4),))
    assert found.counts["eager"] == 3 and found.counts["native"] >= 8
    assert "3 eager" in str(found) and "test_partition.py" in str(found)


def test_a_graph_without_native_ops_runs_in_torch() -> None:
    x = torch.randn(3, 3)
    with pytest.warns(MetadefWarning, match="aten.linalg_inv"):
        result = metadef.compile(lambda x: torch.linalg.inv(x), (x,))
    torch.testing.assert_close(result(x), torch.linalg.inv(x))
    assert result.report().parts == 0

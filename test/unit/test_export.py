"""From a model to a captured graph: what stays whole, what inputs and outputs are, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from metadef.diagnostics import MetadefError
from metadef.frontend.export import Exported, export


def _ops(exported: Exported) -> list[str]:
    nodes = exported.graph.module.graph.nodes
    return [str(n.target).removesuffix(".default") for n in nodes if n.op == "call_function"]


def test_keeps_modelled_ops_whole() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.GELU(), nn.SiLU(), nn.Softmax(-1))
    assert _ops(export(model, (torch.ones(2, 8),))) == [
        "aten.linear",
        "aten.layer_norm",
        "aten.gelu",
        "aten.silu",
        "aten.softmax.int",
    ]


def test_decomposes_composite_ops() -> None:
    ops = _ops(export(nn.LSTM(4, 4), (torch.ones(3, 1, 4),)))
    assert "aten.lstm.input" not in ops and "aten.sigmoid" in ops


def test_takes_builtin_functions() -> None:
    assert _ops(export(torch.relu, (torch.ones(3),))) == ["aten.relu"]


def test_makes_in_place_ops_functional() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        y[0].mul_(2)
        return y.relu_()

    ops = _ops(export(model, (torch.ones(3, 4),)))
    assert not [op for op in ops if op.split(".")[1].endswith("_")]


class Everything(nn.Module):
    """Every kind of input and output there is."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.register_buffer("saved", torch.zeros(1))
        self.register_buffer("unsaved", torch.ones(4), persistent=False)
        self.constant = torch.full((4,), 2.0)

    def forward(self, x: torch.Tensor, n: int) -> dict[str, Any]:
        self.saved.add_(1)
        y = x * self.weight + self.unsaved + self.constant
        return {"y": y, "again": (y, None), "x": x, "n": n, "rows": x.shape[0], "w": self.weight}


def test_says_what_inputs_and_outputs_are() -> None:
    rows = Dim("rows", max=9)
    exported = export(Everything(), (torch.ones(3, 4), 5), None, {"x": {0: rows}, "n": None})
    graph = exported.graph
    kinds = {source.name or "x": source.kind for source in graph.source_of.values()}
    assert kinds == {
        "weight": "weight",
        "saved": "state",
        "unsaved": "weight",
        "constant": "weight",
        "x": "argument",
    }
    outputs = [(o.kind, o.index, str(o.dim), o.constant) for o in graph.outputs]
    assert outputs == [
        ("value", 0, "None", None),
        ("value", 0, "None", None),
        ("constant", -1, "None", None),
        ("argument", 0, "None", None),
        ("constant", -1, "None", 5),
        ("size", -1, "rows", None),
        ("weight", -1, "None", None),
    ]
    (mutation,) = graph.mutations
    assert mutation.target.name == "saved" and mutation.value.kind == "value"


def test_weights_share_storage_and_tied_ones_are_one() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4, bias=False)
            self.second = nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight
            self.turned = nn.Parameter(torch.ones(3, 4).t())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(x)) @ self.turned

    model = Tied()
    weights = export(model, (torch.ones(2, 4),)).graph.weights
    assert len(weights) == 2
    assert weights["first.weight"].data_ptr() == model.first.weight.data_ptr()
    assert weights.copied == {"turned"} and weights["turned"].is_contiguous()


def test_takes_functions_and_exported_programs() -> None:
    function = export(lambda x: x.relu(), (torch.ones(2),))
    program = torch.export.export(nn.ReLU(), (torch.ones(2),))
    assert _ops(function) == _ops(export(program)) == ["aten.relu"]


def test_transformers_outputs_keep_their_class() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=9,
    )
    model = transformers.BertModel(config).eval()
    exported = export(model, (torch.ones(1, 4, dtype=torch.int64),))
    assert exported.out_spec.type.__name__ == "BaseModelOutputWithPoolingAndCrossAttentions"
    assert "aten.scaled_dot_product_attention" in _ops(exported)


@pytest.mark.parametrize(
    ("model", "args", "shapes", "message"),
    [
        (
            lambda x: x if x.sum() > 0 else -x,
            (torch.ones(2),),
            None,
            "torch.export refuses .*[Dd]ata.dependent.*torch.cond",
        ),
        (lambda x: x + torch.ones(3), (torch.ones(2),), None, "refuses .*broadcast.*eager"),
        (
            lambda x: x + torch.ones(4, 1),
            (torch.ones(4, 2),),
            {"x": {0: Dim("rows")}},
            "refuses .*rows.*change dynamic_shapes",
        ),
        (3, (), None, "model: expected a torch.nn.Module.*got int"),
    ],
)
def test_refusals_say_why(model: Any, args: Any, shapes: Any, message: str) -> None:
    with pytest.raises(MetadefError, match=f"(?s){message}"):
        export(model, args, None, shapes)


def test_weights_must_be_dense_on_the_cpu() -> None:
    with pytest.raises(MetadefError, match="weight 'weight': expected a tensor on cpu, got meta"):
        export(nn.Linear(2, 2, device="meta"), (torch.ones(1, 2, device="meta"),))

"""From a captured graph to the torch dialect: weights by name, dims and lines as attributes."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.export import Dim

from metadef.frontend.export import export
from metadef.frontend.importer import import_graph


def _import(model: Any, args: Any, shapes: Any = None, debug: bool = False) -> str:
    graph = export(model, args, None, shapes).graph
    module = import_graph(graph.module, graph.source_of, graph.symbols)
    assert module.operation.verify()
    return str(module.operation.get_asm(enable_debug_info=debug))


def test_weights_are_arguments_by_name_and_never_literals() -> None:
    text = _import(nn.Linear(300, 200), (torch.ones(2, 300),))
    assert '!torch.vtensor<[200,300],f32> {metadef.weight = "weight"}' in text
    assert "literal" not in text and "dense" not in text


def test_symbolic_dims_are_attributes() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        rows, columns, _ = x.shape
        return torch.cat([x.reshape(rows * columns, 8), y])[: columns // 2]

    rows, columns = Dim("B", max=64), Dim("S", min=4, max=512)
    text = _import(
        model,
        (torch.ones(4, 6, 8), torch.ones(5, 8)),
        {"x": {0: rows, 1: columns}, "y": {0: Dim("N")}},
    )
    assert 'metadef.dims = ["B", "S", 8]' in text
    assert 'metadef.dims = [["B*S + N", 8]]' in text
    assert 'metadef.dim = "floordiv(S, 2)"' in text
    assert "B = {divisor = 1 : i64, max = 64 : i64, min = 0 : i64}" in text
    assert "S = {divisor = 1 : i64, max = 512 : i64, min = 4 : i64}" in text


def test_lines_of_the_model_are_locations() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(2, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    line = Model.forward.__code__.co_firstlineno + 1
    assert f'test_importer.py":{line}:0)' in _import(Model(), (torch.ones(1, 2),), debug=True)


def test_tensors_made_while_tracing_are_weights() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x + torch.tensor([1.0, 2.0])

    assert "metadef.weight = " in _import(model, (torch.ones(2),))


def test_strided_views_become_indexing() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x.as_strided((3, 2), (1, 1))

    text = _import(model, (torch.ones(4),))
    assert "torch.aten.index.Tensor" in text and "torch.aten.as_strided" not in text


def test_importing_copies_no_weight() -> None:
    model = nn.Linear(1 << 10, 1 << 10)
    graph = export(model, (torch.ones(1, 1 << 10),)).graph
    module = import_graph(graph.module, graph.source_of, graph.symbols)
    assert len(str(module)) < 5000
    assert graph.weights["weight"].data_ptr() == model.weight.data_ptr()


def test_integers_that_no_dialect_has_are_expressions() -> None:
    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.full((torch.sym_max(x.shape[0], y.shape[0]),), 1.5)

    text = _import(model, (torch.ones(3), torch.ones(4)), {"x": {0: Dim("A")}, "y": {0: Dim("B")}})
    assert 'torch.symbolic_int "max(' in text

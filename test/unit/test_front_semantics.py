"""After every pass of the front pipeline the program still means what torch computes.

The program is interpreted by the reference semantics, in double precision, after each pass; the
results are compared with the model in double precision. Tolerance: 4e-7 of the largest value, four
roundings to float32 (the model's own float32 constants, folded weights, and the result).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils import _pytree as pytree

from metadef import ir
from metadef.dialects.metadef.interpret import interpret_program
from metadef.frontend.export import export
from metadef.frontend.importer import import_graph
from metadef.pass_runner import PassRunner, Step
from metadef.pipelines import passes_of

TOLERANCE = 4e-7


class Convolutions(nn.Module):
    """Batch norms to fold, layouts to propagate, up- and downsampling, a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8))
        self.deep = nn.Sequential(nn.Conv2d(8, 8, 3, 1, 1, groups=8), nn.BatchNorm2d(8), nn.SiLU())
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        for bn in (self.down[1], self.deep[1]):
            nn.init.normal_(bn.running_mean)
            nn.init.uniform_(bn.running_var, 0.5, 2.0)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.relu(self.down(x))
        z = self.deep(y) + y
        pooled = F.adaptive_avg_pool2d(F.max_pool2d(z, 3, 2, 1), 1).flatten(1)
        return pooled, self.up(z), F.interpolate(z, scale_factor=2.0, mode="bilinear")


class Indexing(nn.Module):
    """Slices, sorts, scans, scatters."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        values, indices = torch.topk(x, 2)
        z = x.clone()
        z[:, 1:3] = y[:, :2]
        return [
            values,
            indices,
            z,
            torch.cumsum(x, 1),
            x.flip(0)[:, ::2],
            torch.gather(x, 1, indices).scatter_add(1, indices % 2, values),
            F.pad(x, (1, 2), mode="replicate"),
            torch.logsumexp(x.tril(), 1),
            torch.cat([x, torch.roll(y, 1, 0)], 1).masked_fill(torch.eye(3, 8) > 0, -1.0),
            x.var(1),
        ]


def transformer() -> nn.Module:
    return nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[tuple[int, ...], ...]]] = {
    "convolutions": (Convolutions, ((2, 3, 16, 16),)),
    "indexing": (Indexing, ((3, 4), (3, 4))),
    "transformer": (transformer, ((2, 5, 16),)),
    "lstm": (lambda: nn.LSTM(8, 12, batch_first=True), ((2, 3, 8),)),
}


def doubled(model: nn.Module, args: tuple[torch.Tensor, ...]) -> list[np.ndarray[Any, Any]]:
    with torch.no_grad():
        results = copy.deepcopy(model).double()(*(a.double() for a in args))
    return [r.numpy() for r in pytree.tree_leaves(results)]


def check(
    model: nn.Module, args: tuple[torch.Tensor, ...], dynamic_shapes: Any = None
) -> list[str]:
    """Check the program after each pass; return the passes in order."""
    model.eval()
    expected = doubled(model, args)
    graph = export(model, args, dynamic_shapes=dynamic_shapes).graph
    module = import_graph(graph.module, graph.source_of, graph.symbols)
    weights = {name: graph.weights[name].detach().numpy() for name in graph.weights}
    inputs = [args[s.index].numpy() for _, s in graph.bindings() if s.kind == "argument"]
    done: list[str] = []

    def compare(step: Step, root: ir.Operation) -> None:
        got = interpret_program(module, inputs, weights)
        for i, (x, y) in enumerate(zip(got, expected, strict=True)):
            scale = float(np.max(np.abs(y), initial=0)) or 1.0
            error = float(np.max(np.abs(x.astype(np.float64) - y), initial=0)) / scale
            assert error <= TOLERANCE, f"{step.name()} changed result {i}: error {error:.2e}"
        done.append(step.name())

    PassRunner(on_stage=compare).run(module, passes_of("front"))
    return done


@pytest.mark.parametrize("name", MODELS)
def test_every_pass_keeps_the_meaning(name: str) -> None:
    torch.manual_seed(0)
    make, shapes = MODELS[name]
    args = tuple(torch.randn(*shape) for shape in shapes)
    assert check(make(), args) == [step.name() for step in passes_of("front")]


def test_every_pass_keeps_the_meaning_with_symbolic_dims() -> None:
    torch.manual_seed(0)
    batch, length = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=64)
    shapes = {"src": {0: batch, 1: length}}
    check(transformer(), (torch.randn(3, 6, 16),), shapes)

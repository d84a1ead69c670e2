"""What bench/ measures: the zoo of the tests, and work of the sizes that people deploy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from metadef.cli.demo import bert_base, resnet50
from metadef.cli.models import Model
from metadef.diagnostics import MetadefError, near_names

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))

import zoo  # noqa: E402  it lies in test/, which is no package


class Mlp(nn.Module):
    """Three linear layers of 1024 with GELU between them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU()),
            nn.Linear(1024, 1024),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


class Attention(nn.Module):
    """The attention of 12 heads of 64, without projections."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class NormChain(nn.Module):
    """Layer norms and GELU with residuals: bound by memory, unless it is fused."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(1024) for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for norm in self.norms:
            x = x + F.gelu(norm(x))
        return x


class MatMul(nn.Module):
    """One product of square matrices."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def mlp_batch_1() -> Model:
    return Model("mlp_batch_1", Mlp(), (torch.randn(1, 1024),))


def mlp_batch_64() -> Model:
    return Model("mlp_batch_64", Mlp(), (torch.randn(64, 1024),))


def attention_512() -> Model:
    heads = tuple(torch.randn(1, 12, 512, 64) for _ in range(3))
    return Model("attention_512", Attention(), heads)


def norm_chain() -> Model:
    return Model("norm_chain", NormChain(), (torch.randn(512, 1024),))


def matmul_512() -> Model:
    return Model("matmul_512", MatMul(), (torch.randn(512, 512), torch.randn(512, 512)))


OWN: dict[str, Callable[[], Model]] = {
    "resnet50_224": resnet50,
    "bert_base_128": bert_base,
    **{f.__name__: f for f in (mlp_batch_1, mlp_batch_64, attention_512, norm_chain, matmul_512)},
}

#: groups that the command line may name
GROUPS = {"zoo": list(zoo.ZOO), "own": list(OWN)}


def names_of(text: str) -> list[str]:
    """Return the models that `zoo,mlp_batch_1` names, in order.

    Raises:
        MetadefError: there is no such model or group.
    """
    names: list[str] = []
    known = [*GROUPS, *(name for group in GROUPS.values() for name in group)]
    for name in text.split(","):
        if name not in known:
            near = near_names(name, known)
            raise MetadefError(f"unknown model or group '{name}'{near}")
        names += GROUPS.get(name, [name])
    return list(dict.fromkeys(names))


def load(name: str) -> Model:
    """Build a model, always with the same weights and inputs."""
    if name in zoo.ZOO:
        found = zoo.build(name)
        return Model(name, found.module, found.args, found.kwargs)
    torch.manual_seed(0)
    model = OWN[name]()
    model.module.eval().requires_grad_(False)
    return Model(name, model.module, model.args, model.kwargs)

"""What bench/ measures: rows, each a model with the arguments of a call, and the limit it meets.

`ROWS` are full-size; the group `zoo` has the small models of the tests. Each name is a factory
too: `metadef bench workloads:bert_layer`, with this folder as the current one.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import vision
from language import DecodingGpt, EncoderLayer, Gpt
from torch import Tensor, nn
from torch.nn import functional as F

from metadef.cli.models import Model
from metadef.diagnostics import MetadefError, near_names

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))

Limit = Literal["fma", "bandwidth", "dispatch", "mixed"]


@dataclass(frozen=True)
class Row:
    """A model, what bounds it on a CPU, and the bytes that a call reads and writes at least."""

    build: Callable[[], Model]
    limit: Limit
    traffic: int = 0


class MatMul(nn.Module):
    """A product of two matrices that are both arguments."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


class Attention(nn.Module):
    """Attention without projections, as one op."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(q, k, v)


class AttentionWrittenOut(nn.Module):
    """The same as products and a softmax."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return scores.softmax(-1) @ v


class NormGeluResidual(nn.Module):
    """Two layer norms, each with GELU and a residual: one read and one write, when it is fused."""

    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(1024) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for norm in self.norms:
            x = x + F.gelu(norm(x))
        return x


def of(module: nn.Module, *args: Any, **more: Any) -> Model:
    """Return the module in eval mode with its arguments."""
    return Model("", module.eval().requires_grad_(False), args, **more)


def matmul(m: int, k: int, n: int) -> Model:
    return of(MatMul(), torch.randn(m, k), torch.randn(k, n))


def linear(m: int, k: int, n: int) -> Model:
    """The weights are known when the model is compiled."""
    return of(nn.Linear(k, n, bias=False), torch.randn(m, k))


def mlp() -> nn.Module:
    """Three linear layers of 1024 with GELU between them."""
    first, second, third = (nn.Linear(1024, 1024) for _ in range(3))
    return nn.Sequential(first, nn.GELU(), second, nn.GELU(), third)


def mlp_batch(batch: int) -> Model:
    return of(mlp(), torch.randn(batch, 1024))


def mlp_batch_varied() -> Model:
    """Each call has another batch, from 1 to 64 at random."""
    sizes = random.Random(0).choices(range(1, 65), k=100)
    calls = tuple((torch.randn(size, 1024),) for size in sizes)
    batch = torch.export.Dim("batch", min=1, max=64)
    return of(mlp(), torch.randn(32, 1024), dynamic_shapes=({0: batch},), more_args=calls)


def encoder(layers: int) -> Model:
    """BERT-base's encoder on 128 embedded tokens."""
    stack = nn.Sequential(*(EncoderLayer() for _ in range(layers)))
    return of(stack, torch.randn(1, 128, 768))


def attention(module: nn.Module) -> Model:
    return of(module, *(torch.randn(1, 12, 512, 64) for _ in range(3)))


def image(size: int) -> Tensor:
    return torch.randn(1, 3, size, size)


def resnet18() -> Model:
    return of(vision.resnet((2, 2, 2, 2), bottleneck=False), image(224))


def resnet50() -> Model:
    return of(vision.resnet((3, 4, 6, 3), bottleneck=True), image(224))


def mobilenet_v2() -> Model:
    return of(vision.mobilenet_v2(), image(224))


def gpt2_small() -> Model:
    tokens = torch.randint(50257, (1, 64))
    return of(Gpt(layers=12, width=768, count=12, vocabulary=50257, context=1024), tokens)


def char_gpt_step() -> Model:
    """A character-level GPT decodes the 128th of at most 256 tokens."""
    caches = [torch.randn(1, 6, 256, 64) for _ in range(2 * 6)]
    gpt = DecodingGpt(layers=6, width=384, count=6, vocabulary=65, context=256)
    return of(gpt, torch.randint(65, (1,)), torch.tensor([127]), *caches)


def convnext_tiny() -> Model:
    from transformers import ConvNextConfig, ConvNextForImageClassification

    return of(ConvNextForImageClassification(ConvNextConfig(num_labels=1000)), image(224))


def swin_tiny() -> Model:
    from transformers import SwinConfig, SwinForImageClassification

    return of(SwinForImageClassification(SwinConfig(num_labels=1000)), image(224))


def efficientnet_b0() -> Model:
    from transformers import EfficientNetConfig, EfficientNetForImageClassification

    config = EfficientNetConfig(
        image_size=224,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
        num_labels=1000,
    )
    network = EfficientNetForImageClassification(config)
    # transformers pools with a window larger than the image, which OpenVINO refuses: the same mean
    network.efficientnet.pooler = nn.AdaptiveAvgPool2d(1)
    return of(vision.trained(network), image(224))


def t5_encoder() -> Model:
    """T5-small's encoder on 128 tokens."""
    from transformers import T5Config, T5EncoderModel

    config = T5Config()
    return of(T5EncoderModel(config), torch.randint(config.vocab_size, (1, 128)))


def whisper_encoder() -> Model:
    """Whisper-tiny's encoder on 30 seconds of sound."""
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

    config = WhisperConfig(encoder_layers=4, encoder_attention_heads=6, d_model=384)
    return of(WhisperEncoder(config), torch.randn(1, 80, 3000))


def unet() -> Model:
    """A U-Net of five resolutions."""
    from zoo import UNet

    return of(vision.trained(UNet((32, 64, 128, 256, 512))), image(256))


class Lstm(nn.Module):
    """Two recurrent layers over 64 embedded words; the last output goes to a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10000, 256)
        self.lstm = nn.LSTM(256, 512, num_layers=2, batch_first=True)
        self.head = nn.Linear(512, 10)

    def forward(self, words: Tensor) -> Tensor:
        outputs, _ = self.lstm(self.embedding(words))
        return self.head(outputs[:, -1])


def lstm() -> Model:
    return of(Lstm(), torch.randint(10000, (1, 64)))


_SIZES = {
    **{str(n): (n, n, n) for n in (512, 1024, 2048)},
    "128x768x3072": (128, 768, 3072),
}
_WIDE = 4 * 4096 * 1024  # bytes of an argument of the memory-bound rows

TABLE: dict[str, Row] = {
    **{f"matmul_{name}": Row(partial(matmul, *size), "fma") for name, size in _SIZES.items()},
    **{f"linear_{name}": Row(partial(linear, *size), "fma") for name, size in _SIZES.items()},
    # the weights are read, and an argument and a result of next to nothing
    "mlp_batch_1": Row(partial(mlp_batch, 1), "bandwidth", 3 * 4 * 1024 * 1024),
    "mlp_batch_16": Row(partial(mlp_batch, 16), "mixed"),
    "mlp_batch_128": Row(partial(mlp_batch, 128), "fma"),
    "bert_layer": Row(partial(encoder, 1), "fma"),
    "bert_12_layers": Row(partial(encoder, 12), "fma"),
    "attention_one_op": Row(lambda: attention(Attention()), "fma"),
    "attention_written_out": Row(lambda: attention(AttentionWrittenOut()), "fma"),
    "resnet18_224": Row(resnet18, "fma"),
    "resnet50_224": Row(resnet50, "fma"),
    "mobilenet_v2_224": Row(mobilenet_v2, "mixed"),
    "gpt2_small_64": Row(gpt2_small, "fma"),
    "mlp_batch_varied": Row(mlp_batch_varied, "mixed"),
    "norm_gelu_residual": Row(
        lambda: of(NormGeluResidual(), torch.randn(4096, 1024)), "bandwidth", 2 * _WIDE
    ),
    "softmax": Row(lambda: of(nn.Softmax(-1), torch.randn(4096, 1024)), "bandwidth", 2 * _WIDE),
}

MODELS: dict[str, Row] = {
    "char_gpt_step": Row(char_gpt_step, "dispatch"),
    "convnext_tiny_224": Row(convnext_tiny, "fma"),
    "swin_tiny_224": Row(swin_tiny, "fma"),
    "efficientnet_b0_224": Row(efficientnet_b0, "mixed"),
    "t5_encoder_128": Row(t5_encoder, "fma"),
    "whisper_encoder_30s": Row(whisper_encoder, "fma"),
    "unet_256": Row(unet, "fma"),
    "lstm_64": Row(lstm, "mixed"),
}

ROWS = TABLE | MODELS


def names_of(text: str) -> list[str]:
    """Return the rows that `table,zoo,softmax` names, in order.

    Raises:
        MetadefError: there is no such row or group.
    """
    groups = {"table": list(TABLE), "models": list(MODELS), "zoo": _zoo()}
    names: list[str] = []
    known = [*groups, *(name for group in groups.values() for name in group)]
    for name in text.split(","):
        if name not in known:
            raise MetadefError(f"unknown row or group '{name}'{near_names(name, known)}")
        names += groups.get(name, [name])
    return list(dict.fromkeys(names))


def row(name: str) -> Row:
    """Return a row by its name; nothing is known of what bounds the models of the zoo."""
    return ROWS[name] if name in ROWS else Row(__getattr__(name), "mixed")


def _zoo() -> Sequence[str]:
    import zoo

    return list(zoo.ZOO)


def __getattr__(name: str) -> Callable[[], Model]:
    """Give a row's factory, so that the name of a row is the name of a model."""
    if name in ROWS:
        return ROWS[name].build
    if name.startswith("_"):
        raise AttributeError(name)
    import zoo

    if name not in zoo.ZOO:
        raise AttributeError(name)

    def build() -> Model:
        found = zoo.build(name)
        return Model(name, found.module, found.args, found.kwargs)

    return build

"""The zoo: small models of every family, with random weights, in eval mode.

`ZOO` maps a name to a function that builds a `Specimen`; nothing is downloaded. Small ones where
full size adds nothing: each runs in eager in under a third of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
import transformers as hf
from torch import Tensor, nn
from torch.nn import functional as F
from transformers.models.whisper.modeling_whisper import WhisperEncoder


@dataclass(frozen=True)
class Specimen:
    """A module in eval mode with the arguments of one call."""

    module: nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)


def specimen(module: nn.Module, *args: Any, **kwargs: Any) -> Specimen:
    """Put a module in eval mode, with batch-norm statistics as training would leave them."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, std=0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.normal_(layer.bias, std=0.1)
    return Specimen(module.eval().requires_grad_(False), args, kwargs)


def image(batch: int = 1, size: int = 224) -> Tensor:
    return torch.randn(batch, 3, size, size)


def tokens(batch: int, length: int, vocabulary: int = 1000) -> Tensor:
    return torch.randint(vocabulary, (batch, length))


def resnet18() -> Specimen:
    config = hf.ResNetConfig(
        hidden_sizes=[64, 128, 256, 512], depths=[2, 2, 2, 2], layer_type="basic", num_labels=100
    )
    return specimen(hf.ResNetForImageClassification(config), image())


def resnet50() -> Specimen:
    return specimen(
        hf.ResNetForImageClassification(hf.ResNetConfig(num_labels=100)), image(size=160)
    )


def mobilenet_v2() -> Specimen:
    return specimen(
        hf.MobileNetV2ForImageClassification(hf.MobileNetV2Config(num_labels=100)), image(size=160)
    )


def efficientnet_b0() -> Specimen:
    config = hf.EfficientNetConfig(
        image_size=224,
        width_coefficient=1.0,
        depth_coefficient=1.0,
        hidden_dim=1280,
        num_labels=100,
    )
    return specimen(hf.EfficientNetForImageClassification(config), image(size=160))


def convnext_tiny() -> Specimen:
    return specimen(
        hf.ConvNextForImageClassification(hf.ConvNextConfig(num_labels=100)), image(size=96)
    )


def vit() -> Specimen:
    config = hf.ViTConfig(
        hidden_size=192,
        num_hidden_layers=6,
        num_attention_heads=3,
        intermediate_size=768,
        num_labels=100,
    )
    return specimen(hf.ViTForImageClassification(config), image())


def swin_tiny() -> Specimen:
    return specimen(hf.SwinForImageClassification(hf.SwinConfig(num_labels=100)), image())


def bert() -> Specimen:
    """The last tokens of the second sequence are padding."""
    config = hf.BertConfig(
        hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024
    )
    mask = torch.ones(2, 64, dtype=torch.long)
    mask[1, 40:] = 0
    return specimen(hf.BertModel(config), tokens(2, 64), attention_mask=mask)


def gpt2() -> Specimen:
    config = hf.GPT2Config(
        vocab_size=1000,
        n_embd=192,
        n_layer=3,
        n_head=6,
        n_positions=128,
        use_cache=False,
        bos_token_id=0,
        eos_token_id=0,
    )
    return specimen(hf.GPT2LMHeadModel(config), tokens(2, 48))


def llama() -> Specimen:
    """Grouped-query attention (8 heads on 2) and rotary positions."""
    config = hf.LlamaConfig(
        vocab_size=1000,
        hidden_size=256,
        intermediate_size=688,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=2,
        use_cache=False,
    )
    return specimen(hf.LlamaForCausalLM(config), tokens(1, 40))


def t5_encoder() -> Specimen:
    """Relative position bias, root-mean-square norms."""
    config = hf.T5Config(vocab_size=1000, d_model=128, d_kv=32, d_ff=512, num_layers=3, num_heads=4)
    return specimen(hf.T5EncoderModel(config), tokens(2, 33))


def whisper_encoder() -> Specimen:
    """Two convolutions over time, then transformer layers."""
    config = hf.WhisperConfig(
        d_model=128,
        encoder_layers=3,
        encoder_attention_heads=4,
        encoder_ffn_dim=512,
        max_source_positions=150,
    )
    return specimen(WhisperEncoder(config), torch.randn(1, 80, 300))


class Lstm(nn.Module):
    """Two recurrent layers over embedded tokens, both states in and out."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 64)
        self.lstm = nn.LSTM(64, 96, num_layers=2, batch_first=True)
        self.head = nn.Linear(96, 10)

    def forward(
        self, words: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        outputs, state = self.lstm(self.embedding(words), state)
        return self.head(outputs[:, -1]), state


def lstm() -> Specimen:
    state = (torch.randn(2, 4, 96), torch.randn(2, 4, 96))
    return specimen(Lstm(), tokens(4, 12, 500), state)


def conv_block(inside: int, outside: int) -> nn.Sequential:
    """Two 3x3 convolutions, each with batch norm and ReLU."""
    layers: list[nn.Module] = []
    for channels in (inside, outside):
        conv = nn.Conv2d(channels, outside, 3, padding=1, bias=False)
        layers += [conv, nn.BatchNorm2d(outside), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Down by pooling, up by transposed convolution, joined by concatenation."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        self.down = nn.ModuleList(map(conv_block, (3, *widths[:-1]), widths))
        self.grow = nn.ModuleList(
            nn.ConvTranspose2d(deep, wide, 2, stride=2)
            for wide, deep in zip(widths, widths[1:], strict=False)
        )
        self.up = nn.ModuleList(conv_block(2 * wide, wide) for wide in widths[:-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skips = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            skips.append(x)
        for grow, block, skip in zip(
            reversed(self.grow), reversed(self.up), skips[-2::-1], strict=True
        ):
            x = block(torch.cat([skip, grow(x)], dim=1))
        return self.head(x)


def unet() -> Specimen:
    return specimen(UNet(), image(size=96))


class MixerLayer(nn.Module):
    """An MLP over the patches, then one over the channels."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.tokens = nn.Sequential(
            nn.Linear(patches, width // 2), nn.GELU(), nn.Linear(width // 2, patches)
        )
        self.channels = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.tokens(self.norms[0](x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norms[1](x))


class MlpMixer(nn.Module):
    """Patches by a strided convolution, mixer layers, mean over patches."""

    def __init__(self, size: int = 112, patch: int = 16, width: int = 128, depth: int = 4) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, stride=patch)
        count = (size // patch) ** 2
        self.layers = nn.Sequential(*(MixerLayer(count, width) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 100)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        return self.head(self.norm(self.layers(x)).mean(dim=1))


def mlp_mixer() -> Specimen:
    return specimen(MlpMixer(), image(batch=2, size=112))


class Dlrm(nn.Module):
    """Dense features and embedded categories, their pairwise dot products, an MLP on top."""

    def __init__(self, tables: int = 6, rows: int = 2000, width: int = 32) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, width) for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(13, 64), nn.ReLU(), nn.Linear(64, width), nn.ReLU())
        pairs = tables * (tables + 1) // 2
        self.top = nn.Sequential(nn.Linear(width + pairs, 64), nn.ReLU(), nn.Linear(64, 1))
        rows_of_pairs, columns_of_pairs = torch.tril_indices(tables + 1, tables + 1, offset=-1)
        self.register_buffer("rows", rows_of_pairs, persistent=False)
        self.register_buffer("columns", columns_of_pairs, persistent=False)

    def forward(self, dense: Tensor, categories: Tensor) -> Tensor:
        low = self.bottom(dense)
        embedded = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        vectors = torch.stack([low, *embedded], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        pairs = products[:, self.rows, self.columns]
        return torch.sigmoid(self.top(torch.cat([low, pairs], dim=1)))


def dlrm() -> Specimen:
    return specimen(Dlrm(), torch.randn(64, 13), torch.randint(2000, (64, 6)))


ZOO: dict[str, Callable[[], Specimen]] = {
    build.__name__: build
    for build in (
        *(resnet18, resnet50, mobilenet_v2, efficientnet_b0, convnext_tiny, vit, swin_tiny),
        *(bert, gpt2, llama, t5_encoder, whisper_encoder, lstm, unet, mlp_mixer, dlrm),
    )
}


def build(name: str) -> Specimen:
    """Build a model of the zoo, always with the same weights and inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return ZOO[name]()

"""Transformers in plain torch: BERT's encoder, GPT-2, and a small GPT that decodes with a cache."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def heads(x: Tensor, count: int) -> Tensor:
    """[B, S, W] -> [B, count, S, W / count]"""
    return x.unflatten(-1, (count, -1)).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    """[B, H, S, E] -> [B, S, H * E]"""
    return x.transpose(1, 2).flatten(2)


class EncoderLayer(nn.Module):
    """A layer of BERT-base: attention of 12 heads and an MLP, each with residual, then norm."""

    def __init__(self, width: int = 768, count: int = 12) -> None:
        super().__init__()
        self.count = count
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=1e-12) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(f(x), self.count) for f in (self.query, self.key, self.value))
        x = self.norms[0](x + self.out(joined(F.scaled_dot_product_attention(q, k, v))))
        return self.norms[1](x + self.down(F.gelu(self.up(x))))


class Block(nn.Module):
    """A layer of GPT-2: norm before attention and before the MLP, residuals around both."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.count = count
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def project(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return query, key and value, [B, H, S, E] each."""
        return tuple(heads(t, self.count) for t in self.qkv(self.norms[0](x)).chunk(3, -1))

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add what attention gives, then the MLP."""
        x = x + self.out(joined(attended))
        return x + self.down(F.gelu(self.up(self.norms[1](x)), approximate="tanh"))

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.project(x)
        return self.finish(x, F.scaled_dot_product_attention(q, k, v, is_causal=True))


class Gpt(nn.Module):
    """GPT-2's architecture; the head's weights are the embedding's."""

    def __init__(self, layers: int, width: int, count: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, count) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for embedding in (self.tokens, self.positions):
            nn.init.normal_(embedding.weight, std=0.02)

    def logits(self, x: Tensor) -> Tensor:
        return F.linear(self.norm(x), self.tokens.weight)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.logits(x)


class DecodingGpt(Gpt):
    """One step of decoding: a token in, the logits of the next one out.

    `caches` are the keys, then the values of each layer, [1, H, context, E]; what comes out has
    those of the token at `position`, [1], as well. Later positions are not attended to.
    """

    def forward(self, token: Tensor, position: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        x = (self.tokens(token) + self.positions(position))[None]
        seen = (torch.arange(self.positions.num_embeddings) <= position)[None]
        filled = []
        for number, block in enumerate(self.blocks):
            q, k, v = block.project(x)
            keys = caches[2 * number].index_copy(2, position, k)
            values = caches[2 * number + 1].index_copy(2, position, v)
            x = block.finish(x, F.scaled_dot_product_attention(q, keys, values, seen))
            filled += [keys, values]
        return self.logits(x)[0], *filled

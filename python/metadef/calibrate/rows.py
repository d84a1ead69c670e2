"""Cases of what goes along rows: pointwise, reductions, norms, attention, transposes, gathers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor, nn

from .case import TYPES, Apply, Case, Made, applied, denser, near, random


def elementwise(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of pointwise kernels, for working sets in bytes."""
    for place, size in enumerate(sizes):
        n = near(size / 12 / 64, 8)
        yield applied("pointwise", f"add {n}", lambda x, y: x + y, (n, 64), (n, 64))
        yield applied(
            *("pointwise", f"gelu(add, vector) {n}"),
            lambda x, y: nn.functional.gelu(x + y),
            *((n, 64), (64,)),
        )
        yield applied(
            *("pointwise", f"mul sigmoid {n}"),
            lambda x, y: x * torch.sigmoid(y) + x,
            *((n, 64), (n, 64)),
        )
        dtype = "bf16" if place % 2 else "f64"
        yield applied(
            "pointwise", f"relu(add) {n} {dtype}", _relu_add, (n, 64), (n, 64), dtype=dtype
        )
        yield applied("pointwise", f"exp(first transposed) {n}", _turned, (64, n), (n, 64))
    yield applied("pointwise", "add B", lambda x, y: x + y, (8, 512), (8, 512), values=(4, 32, 256))


def _relu_add(x: Tensor, y: Tensor) -> Tensor:
    return torch.relu(x + y)


def _turned(x: Tensor, y: Tensor) -> Tensor:
    return torch.exp(x.transpose(0, 1)) + y


def along(kind: str, function: Callable[[Tensor, int], Tensor]) -> Callable[..., Iterator[Case]]:
    """Return cases of what goes along a dim: the last one, the first, with something behind."""

    def of(sizes: Sequence[int]) -> Iterator[Case]:
        for place, size in enumerate(sizes):
            rows = near(math.sqrt(size / 8) / 2, 4)
            n = near(size / 8 / rows, 8)
            for dim in (1, 0):
                yield applied(
                    kind, f"{rows}x{n} dim {dim}", lambda x, d=dim: function(x, d), (rows, n)
                )
            yield applied(
                *(kind, f"{rows}x{n} fused"),
                lambda x: torch.relu(function(x * 2.0 + 1.0, 1)),
                (rows, n),
            )
            dtype = "bf16" if place % 2 else "f64"
            yield applied(
                kind, f"{rows}x{n} {dtype}", lambda x: function(x, 1), (rows, n), dtype=dtype
            )
        values = (4, 32, 256)
        yield applied(kind, "Bx256", lambda x: function(x, 1), (8, 256), values=values)

    return of


def reductions(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of reductions over rows, over columns and over tokens of several sequences."""
    yield from along("reduce", lambda x, d: x.sum(d))(sizes)
    for place, size in enumerate(denser(sizes)[:-1]):
        n = (64, 128, 384, 768, 1024)[min(place, 4)]
        tokens = near(size / 16 / n, 7)
        yield applied("reduce", f"4x{tokens}x{n} mean", lambda x: x.mean(1), (4, tokens, n))
        last = _squares if place % 2 else _greatest
        yield applied("reduce", f"4x{tokens}x{n} {last.__name__}", last, (4, tokens, n))


def _greatest(x: Tensor) -> Tensor:
    return x.amax(-1)


def _squares(x: Tensor) -> Tensor:
    return (x * x).sum(-1).sqrt()


def norms(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of norms, for working sets in bytes."""
    for place, size in enumerate(denser(sizes)):
        n = (96, 384, 512, 768, 1024, 2048)[min(place, 5)]
        rows = near(size / 8 / n, 4)
        yield Case("norm", f"layer {rows}x{n}", _norm(nn.LayerNorm, rows, n, "f32", False))
        yield Case("norm", f"rms {rows}x{n}", _norm(nn.RMSNorm, rows, n, "f32", False))
        yield Case("norm", f"layer {rows}x{n} fused", _norm(nn.LayerNorm, rows, n, "f32", True))
        dtype = "bf16" if place % 2 else "f64"
        yield Case("norm", f"layer {rows}x{n} {dtype}", _norm(nn.LayerNorm, rows, n, dtype, False))
        # As many rows as sequences and windows have.
        few = (49, 50, 77, 128, 197, 512)[min(place, 5)]
        n = near(size / 8 / few, 32)
        layer = nn.RMSNorm if place % 2 else nn.LayerNorm
        yield Case("norm", f"{few}x{n}", _norm(layer, few, n, "f32", place % 2 == 0))


def _norm(
    layer: Callable[[int], nn.Module], rows: int, n: int, dtype: str, residual: bool
) -> Callable[[], Made]:
    def make() -> Made:
        norm = layer(n).to(TYPES[dtype])
        x = random(rows, n, dtype=TYPES[dtype])
        if residual:
            return Apply(lambda f, x, y: f(x + y), norm), (x, torch.rand_like(x))
        return Apply(lambda f, x: f(x), norm), (x,)

    return make


def attentions(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of attention, for working sets in bytes."""
    attend = nn.functional.scaled_dot_product_attention
    for place, size in enumerate(sizes):
        for e, causal in ((64, False), (32, True)):
            heads = 2 + 2 * place
            length = min(1024, near(size / 16 / e / heads, 16))
            shape = (1, heads, length, e)
            yield applied(
                *("attention", f"{heads} heads {length}x{e} causal {causal}"),
                lambda q, k, v, c=causal: attend(q, k, v, is_causal=c),
                *(shape,) * 3,
            )
        shape = (4 << place, heads, 49, 32)
        yield applied("attention", f"windows {shape}", attend, *(shape,) * 3)
        shape = (1, 12, (16, 64, 128, 197)[min(place, 3)], 64)
        yield applied("attention", f"12 heads {shape}", attend, *(shape,) * 3)
        shape = (1, heads, max(16, length // 2), e)
        dtype = "bf16" if place % 2 else "f64"
        yield applied(
            "attention", f"{heads} heads {length // 2}x{e} {dtype}", attend, *(shape,) * 3,
            dtype=dtype,
        )  # fmt: skip


def transposes(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of transposes: of matrices, of heads and tokens, of images."""
    for place, size in enumerate(denser(sizes)):
        n = near(math.sqrt(size / 8), 8)
        dtype = "f64" if place % 2 else "bf16"
        yield applied("transpose", f"{n}x{n}", _turn, (n, n))
        yield applied("transpose", f"{n // 8}x8x{n} rows", _turn, (n // 8, 8, n))
        if size in sizes:
            yield applied("transpose", f"{n}x{n} {dtype}", _turn, (n, n), dtype=dtype)
        else:
            yield applied("transpose", f"{n}x{n} fused", _turned, (n, n), (n, n))
        wide, low = near(n * 3, 8), near(n / 3, 4)
        yield applied("transpose", f"{wide}x{low}", _turn, (wide, low))
        e = (32, 64)[place % 2]
        tokens, heads = near(n / 4, 1), near(n / e * 4, 2)
        yield applied("transpose", f"{tokens}x{heads}x{e} heads", _turn, (tokens, heads, e))
    for side in (64, 96, 128, 160, 192, 320):
        channels = 4 if side == 96 else 3
        yield applied("transpose", f"image {side}", _channels_last, (1, channels, side, side))


def _turn(x: Tensor) -> Tensor:
    return x.transpose(0, 1).contiguous()


def _channels_last(x: Tensor) -> Tensor:
    return x.permute(0, 2, 3, 1).contiguous()


def gathers(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of embeddings, for working sets in bytes."""
    for place, size in enumerate(denser(sizes)):
        other = (64, 128, 384, 512, 768, 1024)[min(place, 5)]
        tail = ("fused", "positions")[place % 2]
        for n, behind in ((256, ""), (other, ""), (other, tail), *([(256, "f64")] * (place % 2))):
            rows = max(32, size // 8 // n // 4)
            yield Case("gather", f"{rows}x{n} {behind}", _embedding(rows, n, behind))


def _embedding(rows: int, n: int, tail: str) -> Callable[[], Made]:
    def make() -> Made:
        table = nn.Embedding(rows, n).to(TYPES["f64" if tail == "f64" else "f32"])
        count = max(16, rows // 2)
        indices = torch.randint(rows, (1, count))
        if tail == "fused":
            return Apply(lambda f, i: torch.relu(f(i) * 2.0), table), (indices,)
        if tail == "positions":
            return Apply(lambda f, i, p: f(i) + p, table), (indices, random(1, count, n))
        return Apply(lambda f, i: f(i), table), (indices,)

    return make

"""Cases of matrix products: linear layers, products of computed tensors, one row or many."""

from __future__ import annotations

import math
import random as random_numbers
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from torch import nn

from .case import ACTS, TYPES, Apply, Case, Made, denser, near, random, same


def _linear(
    kind: str, m: int, k: int, n: int, *, dtype: str = "f32", act: str = "", bias: bool = True,
    residual: bool = False, choices: int = 4, values: tuple[int, ...] = (),
) -> Case:  # fmt: skip
    def make() -> Made:
        layer = nn.Linear(k, n, bias=bias).to(TYPES[dtype])
        then = ACTS.get(act, same)
        x = random(m, k, dtype=TYPES[dtype])
        if residual:
            other = random(m, n, dtype=TYPES[dtype])
            return Apply(lambda f, x, y: then(f(x) + y), layer), (x, other)
        return Apply(lambda f, x: then(f(x)), layer), (x,)

    tail = f" {act}" * bool(act) + " + bias" * bias + " + residual" * residual
    return Case(kind, f"linear {m}x{k}x{n} {dtype}{tail}", make, choices, values)


def contractions(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of products, for working sets in bytes."""
    rng = random_numbers.Random(1)
    fused: tuple[dict[str, Any], ...] = (
        {"act": "relu"},
        {"bias": False},
        {},
        {"act": "gelu"},
        {"act": "relu", "residual": True},
    )
    kind = "contraction"
    for place, size in enumerate(sizes):
        for turn in range(5 if place < len(sizes) - 1 else 3):
            m, k, n = _product_dims(size, rng, rows=None if place < len(sizes) - 1 else 16)
            yield _linear(kind, m, k, n, **fused[(turn + place) % len(fused)])
        m, k, n = _product_dims(size, rng, rows=64)
        yield _linear(kind, m, k, n, dtype="bf16" if place % 2 else "f64", act="relu", choices=3)
        m, k, n = _product_dims(size, rng, rows=48)
        yield Case(kind, f"product {m}x{k}x{n}", _product(m, k, n, transposed=False), 3)
        yield Case(kind, f"product {m}x{k}x{n} transposed", _product(m, k, n, transposed=True), 3)
    for m in (49, 128, 196, 384, 784, 3136):
        k, n = (rng.choice((64, 96, 160, 256, 384, 512, 640, 1024, 1536)) for _ in range(2))
        yield _linear(kind, m, k, n, **fused[m % len(fused)])
    yield _linear(kind, 32, 320, 640, act="gelu", values=(8, 16, 32, 64, 128), choices=2)
    yield _linear(kind, 32, 192, 96, act="relu", values=(8, 32, 128, 512), choices=2)


def _product_dims(size: int, rng: random_numbers.Random, rows: int | None) -> tuple[int, int, int]:
    """Return M, K, N, powers of two times odd parts, whose three f32 matrices take `size` bytes."""
    elements = size / 4
    m = rows or near(math.sqrt(elements / 3) * 2 ** rng.uniform(-1, 1), 2)
    # m k + k n + m n = elements, with k = ratio * n
    ratio = 2 ** rng.uniform(-1.5, 1.5)
    b = m * (1 + ratio)
    n = (-b + math.sqrt(b * b + 4 * ratio * elements)) / (2 * ratio)
    return m, near(ratio * n, 8), near(n, 8)


def _product(m: int, k: int, n: int, *, transposed: bool) -> Callable[[], Made]:
    def make() -> Made:
        rhs = random(n, k) if transposed else random(k, n)
        return Apply(lambda x, w: x @ (w.T if transposed else w)), (random(m, k), rhs)

    return make


def matrix_vectors(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of products of one row, for working sets in bytes."""
    kind = "matrix_vector"
    for place, size in enumerate(denser(sizes)):
        n = near(math.sqrt(size / 4), 8)
        part = 2 + 2 * (place % 2)
        yield _linear(kind, 1, n, n, act=("", "relu")[place % 2], choices=2)
        yield _linear(kind, 1, n * part, near(n / part, 4), choices=2)
        yield _linear(kind, 1, near(n / part, 8), n * part, act="gelu", choices=1)
        dtype = "bf16" if place % 2 else "f64"
        yield _linear(kind, 1, n * 2, n, dtype=dtype, choices=1)
        turned = place % 2 == 1
        yield Case(kind, f"product 1x{n}x{n} {turned}", _product(1, n, n, transposed=turned))

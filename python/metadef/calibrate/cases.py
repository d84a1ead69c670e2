"""What is measured: small models, in sizes that follow from the device's caches."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from metadef.device.levels import MEMORY, capacities
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError, near_names

#: a model and the arguments of one call, those by name last where there are any
Made = tuple[Any, tuple[Any, ...]] | tuple[Any, tuple[Any, ...], dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """A small model of one kind; `choices` others than the default are measured of its kernels.

    `values` are those of its symbol B, if it has one; arguments then have it as their first dim.
    """

    kind: str
    name: str
    make: Callable[[], Made]
    choices: int = 1
    values: tuple[int, ...] = ()


class Apply(nn.Module):
    """A function as a model, with modules that it calls."""

    def __init__(self, function: Callable[..., Tensor], *modules: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(modules)

    def forward(self, *args: Tensor) -> Tensor:
        """Apply the function to the modules and the arguments."""
        return self.function(*self.parts, *args)


def cases(spec: DeviceSpec, kinds: Sequence[str] | None = None, quick: bool = False) -> list[Case]:
    """Return the cases of these kinds, of all if none are named; `quick`: the fewest.

    Raises:
        MetadefError: there is no such kind.
    """
    for kind in kinds or ():
        if kind not in KINDS:
            near = near_names(kind, KINDS) or f"; the kinds are {', '.join(KINDS)}"
            raise MetadefError(f"no kind '{kind}' to measure{near}")
    sizes = working_sets(spec)
    found = {kind: list(KINDS[kind](sizes)) for kind in kinds or KINDS}
    if quick:
        found = {kind: _spread(of_kind, _QUICK) for kind, of_kind in found.items()}
    # In turns, so that what is there when a person stops it says something of each kind.
    rounds = max(map(len, found.values()), default=0)
    return [of_kind[n] for n in range(rounds) for of_kind in found.values() if n < len(of_kind)]


def working_sets(spec: DeviceSpec) -> list[int]:
    """Return bytes that one core's nearer caches hold, that the last one does, and that none does.

    Between two levels it is the geometric mean of what they hold; past the last cache, twice that.
    """
    caches = [size for name, size in capacities(spec, 1).items() if name != MEMORY]
    nearest = caches[0] // 2 if caches else 16 << 10
    between = [math.isqrt(a * b) for a, b in zip(caches, caches[1:], strict=False)]
    return [nearest, *between, 2 * caches[-1] if caches else 64 << 20]


#: multiply-adds of a convolution, at about as many outputs as inputs
_MOST_PRODUCTS = 1e8
#: cases of a kind in a quick run
_QUICK = 3
_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f64": torch.float64}
_ACTS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": torch.relu,
    "gelu": nn.functional.gelu,
    "silu": nn.functional.silu,
}


def _spread(of_kind: list[Case], count: int) -> list[Case]:
    if len(of_kind) <= count:
        return of_kind
    return [of_kind[round(n * (len(of_kind) - 1) / (count - 1))] for n in range(count)]


def _same(x: Tensor) -> Tensor:
    return x


def _random(*dims: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(dims, dtype=dtype)


def _linear(
    kind: str, m: int, k: int, n: int, *, dtype: str = "f32", act: str = "", bias: bool = True,
    residual: bool = False, choices: int = 5, values: tuple[int, ...] = (),
) -> Case:  # fmt: skip
    def make() -> Made:
        layer = nn.Linear(k, n, bias=bias).to(_TYPES[dtype])
        then = _ACTS.get(act, _same)
        x = _random(m, k, dtype=_TYPES[dtype])
        if residual:
            other = _random(m, n, dtype=_TYPES[dtype])
            return Apply(lambda f, x, y: then(f(x) + y), layer), (x, other)
        return Apply(lambda f, x: then(f(x)), layer), (x,)

    tail = f" {act}" * bool(act) + " + bias" * bias + " + residual" * residual
    return Case(kind, f"linear {m}x{k}x{n} {dtype}{tail}", make, choices, values)


def _contractions(sizes: Sequence[int]) -> Iterator[Case]:
    rng = random.Random(1)
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


def _product_dims(size: int, rng: random.Random, rows: int | None) -> tuple[int, int, int]:
    """Return M, K, N, powers of two times odd parts, whose three f32 matrices take `size` bytes."""
    elements = size / 4
    m = rows or _near(math.sqrt(elements / 3) * 2 ** rng.uniform(-1, 1), 2)
    # m k + k n + m n = elements, with k = ratio * n
    ratio = 2 ** rng.uniform(-1.5, 1.5)
    b = m * (1 + ratio)
    n = (-b + math.sqrt(b * b + 4 * ratio * elements)) / (2 * ratio)
    return m, _near(ratio * n, 8), _near(n, 8)


def _near(value: float, unit: int) -> int:
    return max(unit, round(value / unit) * unit)


def _product(m: int, k: int, n: int, *, transposed: bool) -> Callable[[], Made]:
    def make() -> Made:
        rhs = _random(n, k) if transposed else _random(k, n)
        return Apply(lambda x, w: x @ (w.T if transposed else w)), (_random(m, k), rhs)

    return make


def _matrix_vectors(sizes: Sequence[int]) -> Iterator[Case]:
    for place, size in enumerate(sizes):
        n = _near(math.sqrt(size / 4), 8)
        for act in ("", "relu"):
            yield _linear("matrix_vector", 1, n, n, act=act, choices=3)
        dtype = "bf16" if place % 2 else "f64"
        yield _linear("matrix_vector", 1, n * 2, n, dtype=dtype, choices=2)
        make = _product(1, n, n, transposed=False)
        yield Case("matrix_vector", f"product 1x{n}x{n}", make, 2)


def _convolution(
    kind: str, channels: int, outputs: int, size: int, window: int, *,
    stride: int = 1, groups: int = 1, act: str = "relu", dtype: str = "f32", last: bool = False,
    choices: int = 3,
) -> Case:  # fmt: skip
    def make() -> Made:
        layer = nn.Conv2d(
            channels, outputs, window, stride=stride, padding=window // 2, groups=groups
        )
        norm = nn.BatchNorm2d(outputs)
        then = _ACTS.get(act, _same)
        model = Apply(lambda f, g, x: then(g(f(x))), layer, norm).eval().to(_TYPES[dtype])
        x = _random(1, channels, size, size, dtype=_TYPES[dtype])
        if last:
            x = x.to(memory_format=torch.channels_last)
        return model, (x,)

    name = f"{channels}->{outputs} {size}x{size} window {window} stride {stride} {dtype} {act}"
    return Case(kind, name + " channels last" * last, make, choices)


def _convolutions(
    kind: str, window: int, stride: int = 1, depthwise: bool = False
) -> Callable[[Sequence[int]], Iterator[Case]]:
    def of(sizes: Sequence[int]) -> Iterator[Case]:
        rng = random.Random(window * 10 + stride)
        for place, size in enumerate(sizes):
            # Input and output take `size`; the further away, the larger the image.
            for turn in range(3):
                side = (7, 14, 28, 56, 112)[min(4, place + rng.randrange(2))]
                most = 1024 if depthwise else _channels(window, side // stride)
                channels = _near(size / 8 / side**2 * (1.5 if turn else 1.0), 8)
                channels = max(16, min(channels, most))
                outputs = channels if depthwise else _near(channels * 2 ** rng.uniform(-1, 1), 8)
                yield _convolution(
                    kind, channels, outputs, side, window, stride=stride,
                    groups=channels if depthwise else 1,
                    act=("relu", "", "silu")[turn],
                    dtype="f64" if turn == 1 and place == 1 else "f32",
                    last=turn == 2,
                )  # fmt: skip
        if kind == "convolution_3x3":
            # too few channels for Winograd
            for channels, side in ((3, 64), (8, 32), (12, 56)):
                yield _convolution(kind, channels, 24, side, window)

    return of


def _channels(window: int, side: int) -> int:
    """Return the most channels that a convolution of this image has: more would take too long."""
    return min(512, _near(math.sqrt(_MOST_PRODUCTS) / (window * side), 8))


def _elementwise(sizes: Sequence[int]) -> Iterator[Case]:
    for place, size in enumerate(sizes):
        n = _near(size / 12 / 64, 8)
        yield _of("pointwise", f"add {n}", lambda x, y: x + y, (n, 64), (n, 64))
        yield _of(
            *("pointwise", f"gelu(add, vector) {n}"),
            lambda x, y: nn.functional.gelu(x + y),
            *((n, 64), (64,)),
        )
        yield _of(
            *("pointwise", f"mul sigmoid {n}"),
            lambda x, y: x * torch.sigmoid(y) + x,
            *((n, 64), (n, 64)),
        )
        dtype = "bf16" if place % 2 else "f64"
        yield _of("pointwise", f"relu(add) {n} {dtype}", _relu_add, (n, 64), (n, 64), dtype=dtype)
        yield _of("pointwise", f"exp(first transposed) {n}", _turned, (64, n), (n, 64))
    yield _of("pointwise", "add B", lambda x, y: x + y, (8, 512), (8, 512), values=(4, 32, 256))


def _relu_add(x: Tensor, y: Tensor) -> Tensor:
    return torch.relu(x + y)


def _turned(x: Tensor, y: Tensor) -> Tensor:
    return torch.exp(x.transpose(0, 1)) + y


def _of(
    kind: str, name: str, function: Callable[..., Tensor], *shapes: tuple[int, ...],
    dtype: str = "f32", values: tuple[int, ...] = (), choices: int = 1,
) -> Case:  # fmt: skip
    def make() -> Made:
        return Apply(function), tuple(_random(*s, dtype=_TYPES[dtype]) for s in shapes)

    return Case(kind, name, make, choices, values)


def _along(kind: str, function: Callable[[Tensor, int], Tensor]) -> Callable[..., Iterator[Case]]:
    """Return cases of what goes along a dim: the last one, the first, with something behind."""

    def of(sizes: Sequence[int]) -> Iterator[Case]:
        for place, size in enumerate(sizes):
            rows = _near(math.sqrt(size / 8) / 2, 4)
            n = _near(size / 8 / rows, 8)
            for dim in (1, 0):
                yield _of(kind, f"{rows}x{n} dim {dim}", lambda x, d=dim: function(x, d), (rows, n))
            yield _of(
                *(kind, f"{rows}x{n} fused"),
                lambda x: torch.relu(function(x * 2.0 + 1.0, 1)),
                (rows, n),
            )
            dtype = "bf16" if place % 2 else "f64"
            yield _of(kind, f"{rows}x{n} {dtype}", lambda x: function(x, 1), (rows, n), dtype=dtype)
        values = (4, 32, 256)
        yield _of(kind, "Bx256", lambda x: function(x, 1), (8, 256), values=values)

    return of


def _norms(sizes: Sequence[int]) -> Iterator[Case]:
    for place, size in enumerate(sizes):
        n = (96, 384, 768, 1024, 2048)[min(place * 2, 4)]
        rows = _near(size / 8 / n, 4)
        yield Case("norm", f"layer {rows}x{n}", _norm(nn.LayerNorm, rows, n, "f32", False))
        yield Case("norm", f"rms {rows}x{n}", _norm(nn.RMSNorm, rows, n, "f32", False))
        yield Case("norm", f"layer {rows}x{n} fused", _norm(nn.LayerNorm, rows, n, "f32", True))
        dtype = "bf16" if place % 2 else "f64"
        yield Case("norm", f"layer {rows}x{n} {dtype}", _norm(nn.LayerNorm, rows, n, dtype, False))


def _norm(
    layer: Callable[[int], nn.Module], rows: int, n: int, dtype: str, residual: bool
) -> Callable[[], Made]:
    def make() -> Made:
        norm = layer(n).to(_TYPES[dtype])
        x = _random(rows, n, dtype=_TYPES[dtype])
        if residual:
            return Apply(lambda f, x, y: f(x + y), norm), (x, torch.rand_like(x))
        return Apply(lambda f, x: f(x), norm), (x,)

    return make


def _attentions(sizes: Sequence[int]) -> Iterator[Case]:
    attend = nn.functional.scaled_dot_product_attention
    for place, size in enumerate(sizes):
        for e, causal in ((64, False), (32, True)):
            heads = 2 + 2 * place
            length = min(1024, _near(size / 16 / e / heads, 16))
            shape = (1, heads, length, e)
            yield _of(
                *("attention", f"{heads} heads {length}x{e} causal {causal}"),
                lambda q, k, v, c=causal: attend(q, k, v, is_causal=c),
                *(shape,) * 3,
            )
        shape = (1, heads, max(16, length // 2), e)
        dtype = "bf16" if place % 2 else "f64"
        yield _of(
            "attention", f"{heads} heads {length // 2}x{e} {dtype}", attend, *(shape,) * 3,
            dtype=dtype,
        )  # fmt: skip


def _pools(sizes: Sequence[int]) -> Iterator[Case]:
    for place, size in enumerate(sizes):
        side = (14, 28, 56, 112)[min(place, 3)]
        c = max(8, _near(size / 8 / side**2, 8))
        for name, function in (
            ("max", lambda x: nn.functional.max_pool2d(x, 3, 2, 1)),
            ("average", lambda x: nn.functional.avg_pool2d(x, 2)),
            ("average, relu", lambda x: torch.relu(nn.functional.avg_pool2d(x, 3, 1, 1))),
        ):
            dtype = "f64" if name == "average" and place == 1 else "f32"
            yield _of(
                "pool", f"{name} {c}x{side}x{side}", function, (1, c, side, side), dtype=dtype
            )


def _transposes(sizes: Sequence[int]) -> Iterator[Case]:
    for place, size in enumerate(sizes):
        n = _near(math.sqrt(size / 8), 8)
        dtype = "f64" if place % 2 else "bf16"
        turn: Callable[[Tensor], Tensor] = lambda x: x.transpose(0, 1).contiguous()  # noqa: E731
        yield _of("transpose", f"{n}x{n}", turn, (n, n))
        yield _of("transpose", f"{n // 8}x8x{n} rows", turn, (n // 8, 8, n))
        yield _of("transpose", f"{n}x{n} {dtype}", turn, (n, n), dtype=dtype)
        yield _of("transpose", f"{n}x{n} fused", _turned, (n, n), (n, n))


def _gathers(sizes: Sequence[int]) -> Iterator[Case]:
    for size in sizes:
        rows, n = max(32, size // 8 // 256 // 4), 256

        def embed(rows: int = rows, n: int = n, fused: bool = False, dtype: str = "f32") -> Made:
            table = nn.Embedding(rows, n).to(_TYPES[dtype])
            indices = torch.randint(rows, (1, max(16, rows // 2)))
            if fused:
                return Apply(lambda f, i: torch.relu(f(i) * 2.0), table), (indices,)
            return Apply(lambda f, i: f(i), table), (indices,)

        yield Case("gather", f"{rows}x{n}", embed)
        yield Case("gather", f"{rows}x{n} fused", lambda e=embed: e(fused=True))  # type: ignore[misc]
        yield Case("gather", f"{rows}x{n} f64", lambda e=embed: e(dtype="f64"))  # type: ignore[misc]


#: kind -> its cases for working sets
KINDS: dict[str, Callable[[Sequence[int]], Iterable[Case]]] = {
    "contraction": _contractions,
    "matrix_vector": _matrix_vectors,
    "convolution_1x1": _convolutions("convolution_1x1", 1),
    "convolution_3x3": _convolutions("convolution_3x3", 3),
    "depthwise": _convolutions("depthwise", 3, depthwise=True),
    "strided": _convolutions("strided", 3, stride=2),
    "pointwise": _elementwise,
    "reduce": _along("reduce", lambda x, d: x.sum(d)),
    "softmax": _along("softmax", lambda x, d: x.softmax(d)),
    "norm": _norms,
    "attention": _attentions,
    "pool": _pools,
    "transpose": _transposes,
    "gather": _gathers,
}

"""Cases of images: convolutions and pools, alone and between 1x1 convolutions as in networks.

Alone, a kernel reads and writes images with channels first, and there are transposes around it;
between others it has channels last.
"""

from __future__ import annotations

import random as random_numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor, nn

from .case import ACTS, TYPES, Apply, Case, Made, applied, denser, near, random, same

#: multiply-adds of a convolution, at about as many outputs as inputs
_MOST_PRODUCTS = 1e8
_MOST_CHANNELS = 1024
#: channels before and behind what a network has between 1x1 convolutions, which are not measured
_AROUND = 16
#: networks have multiples of so many channels: others have vectors that are not full
_UNIT = 16
_SIDES = (7, 14, 28, 56, 112)
#: Channels and sides of images whose transforms lie in planes of about a multiple of 1 KiB: their
#: lines share few sets of a cache, as in most networks.
_POWERS_OF_TWO = (
    *((128, 7), (256, 7), (1024, 7), (64, 14), (128, 14), (512, 14)),
    *((64, 28), (256, 28), (32, 56), (128, 56), (64, 112)),
)


@dataclass(frozen=True)
class _Convolution:
    """A convolution with its norm; depthwise if it has as many `groups` as channels."""

    channels: int
    outputs: int
    window: int = 1
    stride: int = 1
    groups: int = 1

    def __call__(self) -> nn.Module:
        padding = self.window // 2
        layer = nn.Conv2d(
            self.channels, self.outputs, self.window, self.stride, padding, groups=self.groups
        )
        return nn.Sequential(layer, nn.BatchNorm2d(self.outputs))

    def __str__(self) -> str:
        return f"{self.channels}->{self.outputs} window {self.window} stride {self.stride}"


def convolutions(kind: str, window: int, stride: int = 1) -> Callable[..., Iterator[Case]]:
    """Return the cases of a kind of convolutions, for working sets in bytes."""

    def of(sizes: Sequence[int]) -> Iterator[Case]:
        rng = random_numbers.Random(window * 10 + stride)
        for place, size in enumerate(sizes):
            for turn in range(3 if window == 1 else 1):
                # Input and output take `size`; the further away, the larger the image.
                side = _SIDES[min(4, place + rng.randrange(2))]
                channels = max(16, min(near(size / 8 / side**2, 8), _most(window, side // stride)))
                outputs = near(channels * 2 ** rng.uniform(-1, 1), 8)
                layer = _Convolution(channels, outputs, window, stride)
                act, dtype = ("relu", "", "silu")[turn], "f64" if place == turn == 1 else "f32"
                yield _alone(kind, layer, side, act, dtype=dtype, last=turn == 2)
        for place, size in enumerate(denser(sizes)[:-1] if window > 1 else ()):
            for turn in range(3 if stride > 1 else 2):
                side = _SIDES[min(4, max(0, place + rng.randrange(-1, 2)))]
                most = _most(window, side // stride)
                channels = min(near(size / 8 / side**2, _UNIT), near(most, _UNIT))
                outputs = near(channels * 2 ** rng.uniform(-0.5, 0.5), _UNIT)
                narrow = stride > 1 and turn == 1
                layer = _Convolution(channels, outputs, 1 if narrow else window, stride)
                wanted = (kind, *(["winograd"] if window == 3 and stride == 1 else []))
                yield _in_network(kind, layer, side, wanted, ("relu", "silu", "")[turn])
        for channels, side in _POWERS_OF_TWO if window == 3 and stride == 1 else ():
            layer = _Convolution(channels, channels, window)
            yield _in_network(kind, layer, side, ("winograd",), "relu")
        if stride > 1:
            # the first layers of networks
            for outputs, side, first in ((64, 224, 7), (32, 224, 3), (16, 96, 3)):
                yield _alone(kind, _Convolution(3, outputs, first, stride), side, "relu")
        elif window > 1:
            # too few channels for Winograd
            for channels, side in ((3, 64), (8, 32), (12, 56)):
                yield _alone(kind, _Convolution(channels, 24, window), side, "relu")

    return of


def _most(window: int, side: int) -> int:
    """Return the most channels that a convolution of this image has: more would take too long."""
    return min(_MOST_CHANNELS // 2, near(sqrt(_MOST_PRODUCTS) / (window * side), 8))


def depthwise(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of depthwise convolutions, for working sets in bytes."""
    rng = random_numbers.Random(1)
    for place, size in enumerate(denser(sizes)):
        for turn, (window, stride) in enumerate(((3, 1), (3, 2), (5, 1), (3, 1))):
            side = _SIDES[min(4, max(0, place + rng.randrange(-1, 2)))]
            unit = 8 if turn == 3 else _UNIT
            channels = max(16, min(near(size / 8 / side**2, unit), _MOST_CHANNELS))
            layer = _Convolution(channels, channels, window, stride, channels)
            act = ("relu", "silu", "", "relu")[turn]
            if turn == 3:
                yield _alone("depthwise", layer, side, act, dtype="f64" if place == 1 else "f32")
            elif size < sizes[-1]:
                yield _in_network("depthwise", layer, side, ("depthwise",), act)


def pools(sizes: Sequence[int]) -> Iterator[Case]:
    """Return the cases of pools, for working sets in bytes."""
    for place, size in enumerate(sizes):
        side = _SIDES[min(place + 1, 4)]
        c = max(8, near(size / 8 / side**2, 8))
        dtype = "f64" if place == 1 else "f32"
        pool, shape = ("max 3 2", "average 2 2")[place % 2], (1, c, side, side)
        yield applied("pool", f"{pool} {shape}", _pool(pool), shape, dtype=dtype)
    for place, size in enumerate(denser(sizes)[:-1]):
        for turn, pool in enumerate(("max 3 2", "max 2 2", "average 3 1", "average 2 2")):
            side = _SIDES[min(4, place + turn % 2)]
            c = near(size / 8 / side**2, _UNIT)
            yield _function_in_network("pool", pool, _pool(pool), c, side)


def _pool(name: str) -> Callable[[Tensor], Tensor]:
    what, window, stride = name.split()
    pool = nn.functional.max_pool2d if what == "max" else nn.functional.avg_pool2d
    padding = int(window) // 2 if int(window) % 2 else 0
    return lambda x: pool(x, int(window), int(stride), padding)


def averages(sizes: Sequence[int]) -> Iterator[Case]:
    """Return cases of averages over whole images, for working sets in bytes."""
    for place, size in enumerate(denser(sizes)[:-1]):
        for side in (7, _SIDES[min(place, 4)]):
            c = max(32, min(2 * _MOST_CHANNELS, near(size / 4 / side**2, 32)))
            yield _function_in_network("reduce", "average", _average, c, side)


def _average(x: Tensor) -> Tensor:
    return x.mean((2, 3), keepdim=True)


def _alone(
    kind: str, layer: _Convolution, side: int, act: str, *, dtype: str = "f32", last: bool = False
) -> Case:
    def make() -> Made:
        model = nn.Sequential(layer(), Apply(ACTS.get(act, same))).eval().to(TYPES[dtype])
        x = random(1, layer.channels, side, side, dtype=TYPES[dtype])
        return model, (x.to(memory_format=torch.channels_last) if last else x,)

    name = f"{layer} {side}x{side} {dtype} {act}" + " channels last" * last
    return Case(kind, name, make, choices=2)


def _in_network(
    kind: str, layer: _Convolution, side: int, wanted: tuple[str, ...], act: str
) -> Case:
    def make() -> Made:
        inner = nn.Sequential(layer(), Apply(ACTS.get(act, same)))
        return _network(inner, layer.channels, layer.outputs, side)

    name = f"{layer} {side}x{side} {act} in a network"
    return Case(kind, name, make, choices=2, kinds=wanted)


def _function_in_network(
    kind: str, name: str, function: Callable[[Tensor], Tensor], channels: int, side: int
) -> Case:
    def make() -> Made:
        return _network(Apply(function), channels, channels, side)

    name = f"{name} {channels}x{side}x{side} in a network"
    return Case(kind, name, make, kinds=(kind,))


def _network(inner: nn.Module, channels: int, outputs: int, side: int) -> Made:
    """Return a module between 1x1 convolutions, and the arguments of a call.

    A 3x3 convolution comes first: it leaves its image with channels last, as the first layers of
    networks do.
    """
    parts = [
        *(_Convolution(_AROUND, _AROUND, 3)(), nn.ReLU(), _Convolution(_AROUND, channels)()),
        *(nn.ReLU(), inner, _Convolution(outputs, _AROUND)()),
    ]
    return nn.Sequential(*parts).eval(), (random(1, _AROUND, side, side),)

"""Networks on images in plain torch: residual networks and MobileNetV2, in eval mode."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def normed(*layers: nn.Module) -> list[nn.Module]:
    """Return the layers, each convolution followed by its batch norm."""
    found: list[nn.Module] = []
    for layer in layers:
        found.append(layer)
        if isinstance(layer, nn.Conv2d):
            found.append(nn.BatchNorm2d(layer.out_channels))
    return found


def conv(inside: int, outside: int, size: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution without bias that keeps the size of the image, up to its stride."""
    padding = size // 2
    return nn.Conv2d(inside, outside, size, stride, padding, groups=groups, bias=False)


def trained(module: nn.Module) -> nn.Module:
    """Put in eval mode, with batch-norm statistics as training would leave them."""
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.running_mean, std=0.1)
            nn.init.uniform_(layer.running_var, 0.5, 1.5)
            nn.init.uniform_(layer.weight, 0.5, 1.0)
            nn.init.normal_(layer.bias, std=0.1)
    return module.eval().requires_grad_(False)


class Residual(nn.Module):
    """Layers with a way around them: a projection where they change the shape."""

    def __init__(self, layers: list[nn.Module], around: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)
        self.around = nn.Sequential(*around)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layers(x) + self.around(x))


def residual(inside: int, outside: int, stride: int, bottleneck: bool) -> Residual:
    """Two 3x3 convolutions, or a 3x3 between two 1x1 at a quarter of the width."""
    if bottleneck:
        narrow = outside // 4
        layers = normed(
            *(conv(inside, narrow, 1), nn.ReLU()),
            *(conv(narrow, narrow, 3, stride), nn.ReLU()),
            conv(narrow, outside, 1),
        )
    else:
        layers = normed(conv(inside, outside, 3, stride), nn.ReLU(), conv(outside, outside, 3))
    same = stride == 1 and inside == outside
    return Residual(layers, [] if same else normed(conv(inside, outside, 1, stride)))


def resnet(depths: tuple[int, ...], bottleneck: bool) -> nn.Module:
    """A residual network (He et al. 2016) of 1000 classes: so many blocks at each resolution."""
    layers = normed(conv(3, 64, 7, stride=2), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    inside = 64
    for level, depth in enumerate(depths):
        outside = 64 * 2**level * (4 if bottleneck else 1)
        for number in range(depth):
            stride = 2 if level and not number else 1
            layers.append(residual(inside, outside, stride, bottleneck))
            inside = outside
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inside, 1000))
    return trained(nn.Sequential(*layers, *head))


class InvertedResidual(nn.Module):
    """Widen by 1x1, filter each channel alone, narrow by 1x1; added to x where shapes agree."""

    def __init__(self, inside: int, outside: int, stride: int, widen: int) -> None:
        super().__init__()
        wide = inside * widen
        layers = [conv(inside, wide, 1), nn.ReLU6()] if widen > 1 else []
        layers += [conv(wide, wide, 3, stride, groups=wide), nn.ReLU6(), conv(wide, outside, 1)]
        self.layers = nn.Sequential(*normed(*layers))
        self.adds = stride == 1 and inside == outside

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


#: widening, channels, blocks, stride of the first: Sandler et al. 2018, table 2
_MOBILENET_V2 = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)


def mobilenet_v2() -> nn.Module:
    """MobileNetV2 of 1000 classes."""
    layers = normed(conv(3, 32, 3, stride=2), nn.ReLU6())
    inside = 32
    for widen, outside, depth, stride in _MOBILENET_V2:
        for number in range(depth):
            layers.append(InvertedResidual(inside, outside, 1 if number else stride, widen))
            inside = outside
    layers += normed(conv(inside, 1280, 1), nn.ReLU6())
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000))
    return trained(nn.Sequential(*layers, *head))

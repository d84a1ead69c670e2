"""Memory for tensors that live as long as each other, such as what @init makes: one block."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from .back_graph import Tensor
from .dependences import ALIGNMENT
from .large_pages import memory


class BlockMemory:
    """Gives out, once, tensors that lie one behind the other in a block for `tensors`."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._block = memory(sum(_aligned(t.bytes.value) for t in tensors))
        self._used = 0

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a dense CPU tensor with any contents."""
        size = torch.Size(shape).numel() * dtype.itemsize
        start, self._used = self._used, self._used + _aligned(size)
        return self._block[start : start + size].view(dtype).view(shape)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT

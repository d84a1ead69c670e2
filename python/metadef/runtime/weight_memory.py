"""Memory for what @init makes: one block for all of it, in large pages where the system has them.

A program streams its weights: with large pages it looks up fewer addresses on the way, and the
first write to them costs a fraction of the page faults.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterable

import torch

from .back_graph import Tensor
from .dependences import ALIGNMENT

_CPU = torch.device("cpu")
#: bytes of a large page, on x86-64 and on AArch64 with small pages of 4 KiB
_LARGE_PAGE = 2 << 20


class WeightMemory:
    """Gives out, once, tensors that lie one behind the other in a block for `tensors`."""

    def __init__(self, tensors: Iterable[Tensor]) -> None:
        self._block = _block(sum(_aligned(t.bytes.value) for t in tensors))
        self._used = 0

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a dense CPU tensor with any contents."""
        size = torch.Size(shape).numel() * dtype.itemsize
        start, self._used = self._used, self._used + _aligned(size)
        return self._block[start : start + size].view(dtype).view(shape)


def _block(size: int) -> torch.Tensor:
    if size < _LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(size, dtype=torch.uint8, device=_CPU)
    # Private: a mapping that is shared, mmap's default, gets large pages by another setting.
    memory = mmap.mmap(-1, size + _LARGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with contextlib.suppress(OSError):  # a kernel that was built without them
        memory.madvise(mmap.MADV_HUGEPAGE)
    block = torch.frombuffer(memory, dtype=torch.uint8)
    start = -block.data_ptr() % _LARGE_PAGE
    return block[start : start + size]


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT

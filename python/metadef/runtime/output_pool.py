"""Memory for large outputs: taken again once nobody has the tensors any more.

The C library gives large blocks back to the system and gets them again page by page, which can take
longer than the program that fills them.
"""

from __future__ import annotations

import math
import sys

import torch

_CPU = torch.device("cpu")
#: bytes; smaller blocks stay with the C library
_LEAST = 256 * 1024
#: blocks that a pool keeps, in use or not
_MOST = 8


class OutputPool:
    """Gives out tensors in memory of its own; one call at a time uses it."""

    def __init__(self) -> None:
        self._blocks: list[torch.UntypedStorage] = []

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a dense CPU tensor with any contents."""
        size = math.prod(shape) * dtype.itemsize
        tensor = torch.empty(0 if size >= _LEAST else shape, dtype=dtype, device=_CPU)
        if size < _LEAST:
            return tensor
        if type(tensor) is not torch.Tensor:  # in a mode that makes tensors of its own
            return torch.empty(shape, dtype=dtype, device=_CPU)
        return tensor.set_(self._block(size), 0, shape)  # type: ignore[call-overload]

    def _block(self, size: int) -> torch.UntypedStorage:
        for block in self._blocks:
            # References: the list's, this name's, the argument's. More: somebody has the storage.
            if block.nbytes() == size and sys.getrefcount(block) == 3 and _tensors(block) == 0:
                return block
        block = torch.empty(size, dtype=torch.uint8, device=_CPU).untyped_storage()
        self._blocks.append(block)
        del self._blocks[:-_MOST]
        return block


def _tensors(block: torch.UntypedStorage) -> int:
    """Return how many tensors use the storage; its Python object is one use more."""
    return int(torch._C._storage_Use_Count(block._cdata)) - 1

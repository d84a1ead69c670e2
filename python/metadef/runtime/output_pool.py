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
#: shapes of small outputs that a pool remembers
_MOST_SMALL = 64


class _Block:
    """A block of memory and a tensor in it, which others are made like: the fastest way by far."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.shape, self.dtype = shape, dtype
        with torch.inference_mode(False):
            self.like = torch.empty(shape, dtype=dtype, device=_CPU)
        self.storage = self.like.untyped_storage()
        self.size = self.storage.nbytes()

    def is_free(self) -> bool:
        """Tell whether nobody else has the storage, by a tensor or by its Python object."""
        storage = self.storage
        # References: the block's, this name's, the argument's, and that of the C++ object. That has
        # two uses: by its Python object and by `like`.
        return (
            sys.getrefcount(storage) == 4
            and torch._C._storage_Use_Count(storage._cdata) == 2
            and storage.nbytes() == self.size
        )

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor of the block's size in it."""
        if self.shape != shape or self.dtype is not dtype:
            self.shape, self.dtype = shape, dtype
            with torch.inference_mode(False):
                self.like = torch.empty(0, dtype=dtype, device=_CPU)
                self.like.set_(self.storage, 0, shape)  # type: ignore[call-overload]
        return self.like.new().set_(self.like)  # type: ignore[call-overload]


class OutputPool:
    """Gives out tensors in memory of its own; one call at a time uses it.

    It keeps at most so many blocks, in use or not. Twice the outputs of a call are enough for who
    holds the results of a call until the next one is through.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._blocks: list[_Block] = []
        self._small: dict[tuple[tuple[int, ...], torch.dtype], torch.Tensor] = {}

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a dense CPU tensor with any contents."""
        if torch._C._len_torch_dispatch_stack():  # a mode makes tensors of its own
            return torch.empty(shape, dtype=dtype, device=_CPU)
        small = self._small.get((shape, dtype))
        if small is not None:
            return torch.empty_like(small)
        size = math.prod(shape) * dtype.itemsize
        if size >= _LEAST:
            return self._block(shape, dtype, size).tensor(shape, dtype)
        if len(self._small) == _MOST_SMALL:
            self._small.clear()
        with torch.inference_mode(False):
            small = self._small[shape, dtype] = torch.empty(shape, dtype=dtype, device=_CPU)
        return torch.empty_like(small)

    def _block(self, shape: tuple[int, ...], dtype: torch.dtype, size: int) -> _Block:
        blocks = self._blocks
        for at, block in enumerate(blocks):
            if block.size == size and block.is_free():
                del blocks[at]
                blocks.append(block)  # looked at last by the next that wants one
                return block
        block = _Block(shape, dtype)
        blocks.append(block)
        del blocks[: -self._most]
        return block

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
#: shapes of outputs that a pool remembers
_MOST_KNOWN = 64


class _Block:
    """A block of memory and tensors in it, which others are made like: the fastest way by far."""

    def __init__(self, shape: tuple[int, ...], dtype: torch.dtype) -> None:
        self.size = math.prod(shape) * dtype.itemsize
        with torch.inference_mode(False):
            self.storage = torch.empty(self.size, dtype=torch.uint8, device=_CPU).untyped_storage()
        self._shape, self._dtype = shape, dtype
        #: one outside inference mode, and one inside
        self._likes: list[torch.Tensor | None] = [None, None]
        self._uses = 1

    def is_free(self) -> bool:
        """Tell whether nobody else has the storage, by a tensor or by its Python object."""
        storage = self.storage
        # References: the block's, this name's, the argument's, and that of the C++ object. That has
        # a use by its Python object and one by each tensor here.
        return (
            sys.getrefcount(storage) == 4
            and torch._C._storage_Use_Count(storage._cdata) == self._uses
            and storage.nbytes() == self.size
        )

    def tensor(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor of the block's size in it."""
        if self._shape != shape or self._dtype is not dtype:
            self._shape, self._dtype = shape, dtype
            self._likes, self._uses = [None, None], 1
        mode = torch.is_inference_mode_enabled()
        like = self._likes[mode]
        if like is None:
            like = torch.empty(0, dtype=dtype, device=_CPU)
            like.set_(self.storage, 0, shape)  # type: ignore[call-overload]
            self._likes[mode] = like
            self._uses += 1
        return like.data  # a tensor of its own, no view, on the same memory


class OutputPool:
    """Gives out tensors in memory of its own; one call at a time uses it.

    It keeps at most so many blocks, in use or not. Twice the outputs of a call are enough for who
    holds the results of a call until the next one is through.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._blocks: list[_Block] = []
        #: for each shape and dtype the size of a block, or a small tensor
        self._known: dict[tuple[tuple[int, ...], torch.dtype], torch.Tensor | int] = {}

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a dense CPU tensor with any contents."""
        if torch._C._len_torch_dispatch_stack():  # a mode makes tensors of its own
            return torch.empty(shape, dtype=dtype, device=_CPU)
        known = self._known.get((shape, dtype))
        if known is None:
            known = self._get_to_know(shape, dtype)
        if isinstance(known, int):
            return self._block(shape, dtype, known).tensor(shape, dtype)
        return torch.empty_like(known)

    def _get_to_know(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor | int:
        known: torch.Tensor | int = math.prod(shape) * dtype.itemsize
        if known < _LEAST:
            with torch.inference_mode(False):
                known = torch.empty(shape, dtype=dtype, device=_CPU)
        if len(self._known) == _MOST_KNOWN:
            self._known.clear()
        self._known[shape, dtype] = known
        return known

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

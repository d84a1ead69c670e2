"""Memory of a program's own, in large pages where the system has them.

A program goes over its weights and its arena in every call: with large pages it looks up fewer
addresses on the way, the first write costs a fraction of the page faults, and what lies together in
a cache does not change with the small pages that the system happened to give.
"""

from __future__ import annotations

import contextlib
import mmap

import torch

from metadef.diagnostics import MetadefError

#: bytes of a large page, on x86-64 and on AArch64 with small pages of 4 KiB
_LARGE_PAGE = 2 << 20


def memory(size: int) -> torch.Tensor:
    """Return `size` bytes with any contents, aligned for vectors; from a large page on in such.

    Raises:
        MetadefError: the system has not so much.
    """
    if size < _LARGE_PAGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return torch.empty(size, dtype=torch.uint8, device="cpu")
    # Private: a mapping that is shared, mmap's default, gets large pages by another setting.
    try:
        mapping = mmap.mmap(-1, size + _LARGE_PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MetadefError(
            f"expected {size >> 20} MiB in one piece for a model's weights or intermediates, got "
            f"none from the system ({error.strerror}); free memory, or call with smaller arguments"
        ) from error
    with contextlib.suppress(OSError):  # a kernel that was built without them
        mapping.madvise(mmap.MADV_HUGEPAGE)
    block = torch.frombuffer(mapping, dtype=torch.uint8)
    start = -block.data_ptr() % _LARGE_PAGE
    return block[start : start + size]

"""How much larger than what it is made from a weight may be that @init makes and keeps."""

from __future__ import annotations

MEBIBYTE = 1 << 20
#: MiB that a kernel of @init may always write
MAX_GROWTH = 64


def may_grow(read: int, written: int, max_growth: int = MAX_GROWTH * MEBIBYTE) -> bool:
    """Return whether what a kernel writes, in bytes, may be made once and kept."""
    # Weights for the largest tiles of Winograd's are four times as large.
    return written <= max(4 * read, max_growth)

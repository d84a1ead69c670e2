"""The C library's allocator: it keeps what a program frees, which after compiling is a lot."""

from __future__ import annotations

import ctypes


def give_back_memory() -> None:
    """Give free memory back to the system, where the allocator (glibc's) has a call for it."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

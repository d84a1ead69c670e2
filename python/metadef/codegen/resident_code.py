"""Gives back the memory that the compiler's own code takes, once a model is compiled.

MLIR and LLVM bring some hundred MB of their libraries into memory. Nothing there is ever written,
so a process that goes on to run its model can let go of those pages: who compiles again finds them
in the system's cache of files.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from pathlib import Path

_MAPS = Path("/proc/self/maps")
#: folders of the packages whose libraries are the compiler
_PACKAGES = ("/torch_mlir/", "/llvmlite/")
_MADV_DONTNEED = 4


def give_back_code() -> None:
    """Let go of the pages of the compiler's code, where the system tells which these are."""
    try:
        maps = _MAPS.read_text()
    except OSError:
        return
    for start, end in code_ranges(maps):
        _libc().madvise(start, end - start, _MADV_DONTNEED)


def code_ranges(maps: str) -> Iterator[tuple[int, int]]:
    """Yield the addresses of the compiler's code and of what lies before it in its files.

    Those parts are never written to. What lies behind may have been, before it was made read-only:
    addresses that the loader filled in.
    """
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) < 6 or not any(package in fields[5] for package in _PACKAGES):
            continue
        span, access, offset, *_ = fields
        if access == "r-xp" or (access == "r--p" and int(offset, 16) == 0):
            start, end = span.split("-")
            yield int(start, 16), int(end, 16)


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return libc

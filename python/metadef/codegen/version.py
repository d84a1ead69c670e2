"""What tells this state of the compiler from others."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
from collections.abc import Iterator
from importlib.resources.abc import Traversable

from metadef import __version__

#: parts of the package that a kernel's text does not go through on its way to machine code
_BESIDE_CODE = frozenset(
    "api.py calibrate cli cost frontend measure plan predict profiling runtime tuning".split()
)


@functools.cache
def compiler_version() -> str:
    """Return what tells this state of the compiler from others: versions, hash of its source."""
    return _version(frozenset())


@functools.cache
def code_version() -> str:
    """Return what tells apart states of the compiler that may make other code of a kernel's text:
    measurements of kernels are good for one of them."""
    return _version(_BESIDE_CODE)


def _version(left_out: frozenset[str]) -> str:
    digest = hashlib.sha256()
    for name, content in _source_files(importlib.resources.files("metadef"), ""):
        if name.split("/")[1] in left_out:
            continue
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    llvmlite = importlib.metadata.version("llvmlite")  # says which LLVM it brings
    return f"metadef {__version__} {digest.hexdigest()} llvmlite {llvmlite}"


def _source_files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        name = f"{path}/{file.name}"
        if file.is_dir():
            if file.name != "__pycache__":
                yield from _source_files(file, name)
        elif file.name.endswith(".py"):
            yield name, file.read_bytes()

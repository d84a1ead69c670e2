"""What tells this state of the compiler from others."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
from collections.abc import Iterator
from importlib.resources.abc import Traversable

from metadef import __version__


@functools.cache
def compiler_version() -> str:
    """Return what tells this state of the compiler from others: versions, hash of its source."""
    digest = hashlib.sha256()
    for name, content in _source_files(importlib.resources.files("metadef"), ""):
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

"""What tells this state of the compiler from others."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.resources
from collections.abc import Iterator, Mapping
from importlib.resources.abc import Traversable

from metadef import __version__
from metadef.codegen.import_closure import import_closure, sources

#: What makes machine code of a kernel's text beside the passes of its pipeline, and what describes
#: it in a table: numbers by another description do not compare.
_CODE = ("metadef.codegen.build", "metadef.predict.described")
#: What measures a kernel: numbers measured otherwise do not compare. What this imports runs all
#: that a program has, and is left out.
_MEASURING = ("metadef.measure.kernel_process",)
#: modules whose imports by name are known here: none by the first, passes of the pipeline by the
#: second
_BY_NAME = ("metadef", "metadef.pipeline")


@functools.cache
def compiler_version() -> str:
    """Return what tells this state of the compiler from others: versions, hash of its source."""
    return _version(dict(_source_files(importlib.resources.files("metadef"), "")))


@functools.cache
def code_version() -> str:
    """Return what tells apart states of the compiler that may make other code of a kernel's text,
    or measure or describe it otherwise: measurements of kernels are good for one of them.

    It counts the files of `code_files` alone: a front pass may change without it.
    """
    return _version(code_files())


def code_files() -> dict[str, bytes]:
    """Return the modules of the package that a kernel's text may go through, with their source:
    what its pipeline's passes, code generation and the description import, and what measures."""
    from metadef.pipelines import find_pipeline

    names = [stage.name.replace("-", "_") for stage in find_pipeline("kernel")]
    through = import_closure([*_CODE, *(f"metadef.passes.{name}" for name in names)], _BY_NAME)
    return dict(sorted({**through, **sources(_MEASURING)}.items()))


def _version(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)}\n".encode())
        digest.update(content)
    # They say which MLIR and which LLVM they bring.
    brought = [f"{name} {importlib.metadata.version(name)}" for name in ("torch-mlir", "llvmlite")]
    return f"metadef {__version__} {digest.hexdigest()} {' '.join(brought)}"


def _source_files(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        name = f"{path}/{file.name}"
        if file.is_dir():
            if file.name != "__pycache__":
                yield from _source_files(file, name)
        elif file.name.endswith(".py"):
            yield name, file.read_bytes()

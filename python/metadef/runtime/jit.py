"""Object code in this process: loading it, and the OpenMP runtime that it shares with torch."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.resources
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from metadef.codegen.protocol import Message
from metadef.codegen.version import compiler_version
from metadef.codegen.workers import WORKERS, WorkerCrash
from metadef.diagnostics import MetadefError, PipelineError

from .cache import Cache, default_cache
from .elf import is_object_file
from .host import this_cpu
from .linker import LinkedCode

#: what kernels and the dispatch loop call of OpenMP
_OPENMP_SYMBOLS = ("GOMP_parallel", "GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads")
_LIBRARY_NAMES = ("libgomp.so.1", "libomp.so", "libomp.dylib")


class Code(Protocol):
    """Code in this process's memory."""

    def address(self, function: str) -> int | None:
        """Return where a function is; None where there is none of that name."""


class Library:
    """Object files loaded into this process, unloaded when the library is garbage-collected."""

    def __init__(self, objects: Iterable[bytes]) -> None:
        """Load object files whose symbols are distinct.

        Raises:
            MetadefError: a symbol that they call is not in this process.
        """
        self._code = _load(list(objects))

    def address(self, symbol: str) -> int:
        """Return where the function `symbol` is."""
        address = self._code.address(symbol)
        assert address, f"no function '{symbol}' in the loaded objects"
        return address


def _load(objects: list[bytes]) -> Code:
    if all(map(is_object_file, objects)):
        return LinkedCode(objects, _address_of)
    from .mcjit import LoadedCode  # all of LLVM

    return LoadedCode(objects, _address_of)


def _address_of(symbol: str) -> int:
    """Return where this process has a function that object code calls.

    Raises:
        MetadefError: it has none.
    """
    library = _openmp() if symbol in _OPENMP_SYMBOLS else ctypes.CDLL(None)
    function = getattr(library, symbol, None)
    if function is None:
        raise MetadefError(
            f"object code calls '{symbol}': expected a function of libm, libc or OpenMP in this "
            f"process, got none; report the model as a bug of code generation"
        )
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


@functools.cache
def dispatch_loop() -> Callable[[int], None]:
    """Return `metadef_run` of dispatch.ll: it runs the job at an address, without Python's lock."""
    library = Library([_dispatch_code(default_cache())])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("metadef_run"))
    function.library = library  # type: ignore[attr-defined]  # keeps the code loaded
    return function


def _dispatch_code(cache: Cache) -> bytes:
    """Return the object code of dispatch.ll, from the cache: to make it takes all of LLVM, which a
    process that only runs programs has no use for.

    Raises:
        PipelineError: the worker that makes it failed.
    """
    text = importlib.resources.files("metadef.runtime").joinpath("dispatch.ll").read_text()
    cpu = this_cpu(cache)
    key = hashlib.sha256(f"dispatch\n{compiler_version()}\n{cpu}\n{text}".encode()).hexdigest()
    code = cache.get(key)
    if code is None:
        try:
            answer = WORKERS.ask(Message({"op": "object"}, text.encode()))
        except WorkerCrash as crash:
            raise PipelineError(f"dispatch.ll: the compiler crashed: {crash}") from None
        if "error" in answer.header:
            raise PipelineError(f"dispatch.ll: {answer.header['error']}")
        code = answer.body
        cache.put(key, code)
    return code


@functools.cache
def _openmp() -> ctypes.CDLL:
    """Return the OpenMP runtime that torch has loaded, so that there is one pool of threads."""
    import torch  # loads the runtime

    beside = Path(torch.__file__).parent / "lib"
    for name in (*_loaded_openmp(), *(str(beside / n) for n in _LIBRARY_NAMES), *_LIBRARY_NAMES):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if all(hasattr(library, symbol) for symbol in _OPENMP_SYMBOLS):
            return library
    raise MetadefError(
        "OpenMP runtime: expected torch's own libgomp or libomp in this process, got none; "
        "install a torch build with OpenMP"
    )


def _loaded_openmp() -> list[str]:
    """Return the paths of the OpenMP runtimes that this process has mapped (Linux tells)."""
    try:
        maps = Path("/proc/self/maps").read_text()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[-1] for line in maps.splitlines() if "/" in line}
    return sorted(p for p in paths if Path(p).name.startswith(("libgomp", "libomp")))

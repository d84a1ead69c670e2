"""Object code in this process: loading it, and the OpenMP runtime that it shares with torch."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.resources
import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import llvmlite.binding as llvm

from metadef.diagnostics import MetadefError

from .cache import Cache, default_cache

#: what kernels and the dispatch loop call of OpenMP
_OPENMP_SYMBOLS = ("GOMP_parallel", "GOMP_barrier", "omp_get_thread_num", "omp_get_num_threads")
_LIBRARY_NAMES = ("libgomp.so.1", "libomp.so", "libomp.dylib")
#: name (offset in .strtab), info, other, section (0: undefined), value, size
_ELF_SYMBOL = struct.Struct("<IBBHQQ")
# LLVM's loader is not safe against itself in two threads.
_lock = threading.Lock()


class Library:
    """Object files loaded into this process, unloaded when the library is garbage-collected."""

    def __init__(self, objects: Iterable[bytes]) -> None:
        """Load object files whose symbols are distinct.

        Raises:
            MetadefError: a symbol that they call is not in this process.
        """
        _initialise()
        with _lock:
            machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            for content in objects:
                file = llvm.ObjectFileRef.from_data(content)
                _check_symbols(file)
                self._engine.add_object_file(file)
            self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """Return where the function `symbol` is."""
        with _lock:
            address = self._engine.get_function_address(symbol)
        assert address, f"no function '{symbol}' in the loaded objects"
        return int(address)


def _check_symbols(file: llvm.ObjectFileRef) -> None:
    """Check that this process has what an ELF object file calls: LLVM's loader would end it."""
    sections = {section.name(): section.data() for section in file.sections()}
    table, names = sections.get(b".symtab", b""), sections.get(b".strtab", b"")
    process = ctypes.CDLL(None)
    for name_at, _, _, section, _, _ in _ELF_SYMBOL.iter_unpack(table):
        name = names[name_at : names.find(b"\0", name_at)].decode()
        if section != 0 or name in ("", "_GLOBAL_OFFSET_TABLE_", *_OPENMP_SYMBOLS):
            continue
        if not hasattr(process, name):
            raise MetadefError(
                f"object code calls '{name}': expected a function of libm, libc or OpenMP in this "
                f"process, got none; report the model as a bug of code generation"
            )


@functools.cache
def dispatch_loop() -> Callable[[int], None]:
    """Return `metadef_run` of dispatch.ll: it runs the job at an address, without Python's lock."""
    library = Library([_dispatch_code(default_cache())])
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(library.address("metadef_run"))
    function.library = library  # type: ignore[attr-defined]  # keeps the code loaded
    return function


def _dispatch_code(cache: Cache) -> bytes:
    """Return the object code of dispatch.ll, from the cache: to make it takes all of LLVM, of which
    a process that only runs programs needs the loader."""
    from metadef.codegen.llvm import host_target, object_code, version

    text = importlib.resources.files("metadef.runtime").joinpath("dispatch.ll").read_text()
    target = host_target()
    key = hashlib.sha256(f"dispatch\n{version()}\n{target}\n{text}".encode()).hexdigest()
    code = cache.get(key)
    if code is None:
        code = object_code(text, target)
        cache.put(key, code)
    return code


@functools.cache
def _initialise() -> None:
    """Tell LLVM of this machine and of OpenMP."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    openmp = _openmp()
    for symbol in _OPENMP_SYMBOLS:
        address = ctypes.cast(getattr(openmp, symbol), ctypes.c_void_p).value
        llvm.add_symbol(symbol, address)


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

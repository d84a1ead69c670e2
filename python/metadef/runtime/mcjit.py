"""LLVM's loader of object code, for machines whose object files `linker` does not take."""

from __future__ import annotations

import functools
import struct
import threading
from collections.abc import Callable, Iterable

import llvmlite.binding as llvm

#: name (offset in .strtab), info, other, section (0: undefined), value, size
_ELF_SYMBOL = struct.Struct("<IBBHQQ")
# LLVM's loader is not safe against itself in two threads.
_lock = threading.Lock()


class LoadedCode:
    """The code of object files, in memory as long as this object is."""

    def __init__(self, objects: Iterable[bytes], address_of: Callable[[str], int]) -> None:
        """Load object files with distinct symbols; `address_of` finds what they do not define.

        Raises:
            MetadefError: raised by `address_of`.
        """
        _initialise()
        with _lock:
            machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic")
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
            for content in objects:
                file = llvm.ObjectFileRef.from_data(content)
                for name in _undefined(file):
                    llvm.add_symbol(name, address_of(name))
                self._engine.add_object_file(file)
            self._engine.finalize_object()

    def address(self, function: str) -> int | None:
        """Return where a function is; None where there is none of that name."""
        with _lock:
            return int(self._engine.get_function_address(function)) or None


def _undefined(file: llvm.ObjectFileRef) -> list[str]:
    """Return what an ELF object file calls: LLVM's loader would end a process that lacks it."""
    sections = {section.name(): section.data() for section in file.sections()}
    table, names = sections.get(b".symtab", b""), sections.get(b".strtab", b"")
    found = [
        names[name : names.find(b"\0", name)].decode()
        for name, _, _, section, _, _ in _ELF_SYMBOL.iter_unpack(table)
        if section == 0
    ]
    return [name for name in found if name not in ("", "_GLOBAL_OFFSET_TABLE_")]


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()

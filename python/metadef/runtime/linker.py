"""Links object files for x86-64 into this process, which then needs no LLVM to run them.

LLVM's own loader would do, but it brings tens of MiB of LLVM into memory. Relocations: System V
ABI, AMD64 supplement, section 4.4.
"""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Callable, Iterable

from metadef.diagnostics import MetadefError

from .elf import Relocation, Section, read_object_file

#: kinds of relocations: an address; the distance to it, in four bytes or eight; the distance to
#: code that goes there, or to a word that holds it
_ADDRESS, _DISTANCE, _LONG_DISTANCE, _CALL = 1, 2, 24, 4
_TO_WORD = (9, 41, 42)
_WORD = 8
#: after a word with an address: jmp *word(%rip)
_JUMP = b"\xff\x25" + (-_WORD - 6).to_bytes(4, "little", signed=True)
_STUB_SIZE = 16


class LinkedCode:
    """The code of object files, in memory as long as this object is."""

    def __init__(self, objects: Iterable[bytes], address_of: Callable[[str], int]) -> None:
        """Link object files with distinct symbols; `address_of` finds what they do not define.

        Raises:
            MetadefError: raised by `address_of`, or the code is linked in a way unknown here.
        """
        files = [read_object_file(content) for content in objects]
        self._places, size = _lay_out([s for file in files for s in file.sections])
        relocations = [r for file in files for r in file.relocations]
        stubs = dict.fromkeys(r.symbol for r in relocations if _takes_stub(r))
        #: where words with addresses are, each with a jump there behind it
        self._stubs = {symbol: size + _STUB_SIZE * i for i, symbol in enumerate(stubs)}
        size += _STUB_SIZE * len(stubs)
        self._memory = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._functions = {
            symbol.name: self._address(symbol.section, symbol.offset)
            for file in files
            for symbol in file.symbols
            if symbol.section is not None and not symbol.is_local
        }
        self._fill(address_of)
        for relocation in relocations:
            self._relocate(relocation)
        _make_executable(self._base, len(self._memory))

    def address(self, function: str) -> int | None:
        """Return where a function is; None where there is none of that name."""
        return self._functions.get(function)

    def _fill(self, address_of: Callable[[str], int]) -> None:
        for section, place in self._places.items():
            if section.is_written:
                raise MetadefError(f"object code: expected no variables, got '{section.name}'")
            self._write(place, section.data)
        for symbol, place in self._stubs.items():
            if symbol.section is not None:
                address = self._address(symbol.section, symbol.offset)
            else:
                address = self._functions.get(symbol.name) or address_of(symbol.name)
            self._write(place, address.to_bytes(_WORD, "little") + _JUMP)

    def _relocate(self, relocation: Relocation) -> None:
        at = self._places[relocation.section] + relocation.offset
        kind, symbol = relocation.kind, relocation.symbol
        if _takes_stub(relocation):
            value = self._base + self._stubs[symbol] + (0 if kind in _TO_WORD else _WORD)
        else:
            assert symbol.section is not None
            value = self._address(symbol.section, symbol.offset)
        value += relocation.addend
        if kind != _ADDRESS:
            value -= self._base + at
        size = _WORD if kind in (_ADDRESS, _LONG_DISTANCE) else 4
        self._write(at, value.to_bytes(size, "little", signed=kind != _ADDRESS))

    def _address(self, section: Section, offset: int) -> int:
        return self._base + self._places[section] + offset

    def _write(self, place: int, data: bytes) -> None:
        self._memory[place : place + len(data)] = data


def _lay_out(sections: Iterable[Section]) -> tuple[dict[Section, int], int]:
    """Return the place of each section, and the bytes up to the first stub."""
    places, size = {}, 0
    for section in sections:
        places[section] = size = _aligned(size, section.alignment)
        size += len(section.data)
    return places, _aligned(size, _STUB_SIZE)


def _takes_stub(relocation: Relocation) -> bool:
    """Tell whether code reaches a symbol by way of a word with its address.

    Raises:
        MetadefError: there is no way to reach it.
    """
    kind, symbol = relocation.kind, relocation.symbol
    if kind in _TO_WORD or (kind == _CALL and symbol.section is None):
        return True
    if kind in (_ADDRESS, _DISTANCE, _LONG_DISTANCE, _CALL) and symbol.section is not None:
        return False
    what = f"'{symbol.name}' in '{relocation.section.name}'"
    raise MetadefError(f"object code: expected another way to {what} than relocation {kind}")


def _make_executable(address: int, size: int) -> None:
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    if protect(address, size, mmap.PROT_READ | mmap.PROT_EXEC):
        reason = os.strerror(ctypes.get_errno())
        raise MetadefError(f"memory of {size} bytes for code cannot be made executable: {reason}")


def _aligned(size: int, alignment: int) -> int:
    alignment = max(1, alignment)
    return -(-size // alignment) * alignment

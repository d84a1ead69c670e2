"""Reads object files for x86-64: what of them goes into memory, and what is left to link.

Format: System V ABI, chapter 4, and its AMD64 supplement.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_IDENT = b"\x7fELF\x02\x01\x01"  # 64 bits, the least byte first, version 1
_OBJECT_FILE, _X86_64 = 1, 62
#: kinds of sections
_PROGRAM, _SYMBOLS, _RELOCATIONS, _ZEROS = 1, 2, 4, 8
#: flags of sections
_WRITTEN, _IN_MEMORY = 1, 2
#: the binding of symbols that no other file sees
_LOCAL = 0


@dataclass(frozen=True, eq=False)
class Section:
    """Code or constants to be loaded; `is_written` where code changes it."""

    name: str
    data: bytes
    alignment: int
    is_written: bool


@dataclass(frozen=True, eq=False)
class Symbol:
    """A place at `offset` of a section; no section where another file defines it."""

    name: str
    section: Section | None
    offset: int
    is_local: bool


@dataclass(frozen=True)
class Relocation:
    """What to write at `offset` of a section once addresses are known."""

    section: Section
    offset: int
    kind: int
    symbol: Symbol
    addend: int


@dataclass(frozen=True)
class ObjectFile:
    """An object file; tables for unwinding the stack stay out."""

    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]


def is_object_file(content: bytes) -> bool:
    """Tell whether `content` is an object file for x86-64."""
    if len(content) < _HEADER.size or not content.startswith(_IDENT):
        return False
    _, kind, machine, *_ = _HEADER.unpack_from(content)
    return bool((kind, machine) == (_OBJECT_FILE, _X86_64))


def read_object_file(content: bytes) -> ObjectFile:
    """Read an object file, for which `is_object_file` holds."""
    header = _HEADER.unpack_from(content)
    start, size, count, names_at = header[6], *header[11:14]
    rows = [_SECTION.unpack_from(content, start + i * size) for i in range(count)]

    def data(row: tuple[int, ...]) -> bytes:
        _, kind, _, _, offset, length, *_ = row
        return bytes(length) if kind == _ZEROS else content[offset : offset + length]

    names = data(rows[names_at])
    sections: dict[int, Section] = {}
    for number, row in enumerate(rows):
        name, kind, flags, *_, alignment, _ = row
        name = _text(names, name)
        if kind in (_PROGRAM, _ZEROS) and flags & _IN_MEMORY and name != ".eh_frame":
            written = bool(flags & _WRITTEN) and not name.startswith(".data.rel.ro")
            sections[number] = Section(name, data(row), alignment, written)
    symbols = []
    for table in (row for row in rows if row[1] == _SYMBOLS):
        strings = data(rows[table[6]])
        for name, info, _, section, value, _ in _SYMBOL.iter_unpack(data(table)):
            symbols.append(
                Symbol(_text(strings, name), sections.get(section), value, info >> 4 == _LOCAL)
            )
    relocations = []
    for table in (row for row in rows if row[1] == _RELOCATIONS and row[7] in sections):
        for offset, info, addend in _RELOCATION.iter_unpack(data(table)):
            symbol = symbols[info >> 32]
            relocations.append(
                Relocation(sections[table[7]], offset, info & 0xFFFFFFFF, symbol, addend)
            )
    return ObjectFile(tuple(sections.values()), tuple(symbols), tuple(relocations))


def _text(strings: bytes, start: int) -> str:
    return strings[start : strings.index(b"\0", start)].decode()

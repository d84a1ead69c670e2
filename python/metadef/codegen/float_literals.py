"""Write float literals the way llvmlite's LLVM reads them.

MLIR's bindings print LLVM IR of a newer LLVM: `f0x3FB8AA3B`, `+inf`, `+qnan`, and decimals that
need rounding (`float 1.1`). LLVM 22 takes only exact decimals and `0x` with the bits of a double,
`0xH` of a half, `0xR` of a bfloat (LLVM Language Reference, "Simple Constants").
"""

from __future__ import annotations

import re
import struct

_TOKEN = re.compile(
    r'"[^"]*"'
    r"|\b(?P<type>half|bfloat|float|double)\b"
    r"|(?<![\w.])(?:(?P<bits>f0x[0-9A-Fa-f]+)"
    r"|(?P<special>[+-](?:inf\b|qnan\b|s?nan\(0x[0-9A-Fa-f]+\)))"
    r"|(?P<decimal>-?\d+\.\d+(?:e[+-]?\d+)?))"
)
#: what only a line with a literal has; most have none
_HINT = re.compile(r"f0x|[+-](?:inf|qnan|s?nan)|\d\.\d")
_FORMAT = {"half": ("e", "H"), "float": ("f", "I"), "double": ("d", "Q")}
#: bits of: infinity, the quiet bit, and the sign
_SPECIAL = {
    "half": (0x7C00, 0x200, 1 << 15),
    "bfloat": (0x7F80, 0x40, 1 << 15),
    "float": (0x7F800000, 0x400000, 1 << 31),
    "double": (0x7FF0000000000000, 0x8000000000000, 1 << 63),
}


def for_llvm_22(text: str) -> str:
    """Return LLVM IR with every float literal in a form that LLVM 22 parses to the same bits.

    A literal's type is the nearest one named before it in its line, which holds for every
    instruction.
    """
    lines = text.split("\n")
    return "\n".join(_rewritten(line) if _HINT.search(line) else line for line in lines)


def _rewritten(line: str) -> str:
    kind = "double"

    def rewrite(match: re.Match[str]) -> str:
        nonlocal kind
        if match["type"]:
            kind = match["type"]
        elif match["bits"]:
            return _literal(kind, int(match["bits"][3:], 16))
        elif match["special"]:
            return _literal(kind, _special_bits(kind, match["special"]))
        elif match["decimal"] and kind != "double":
            return _literal(kind, _decimal_bits(kind, float(match["decimal"])))
        return match[0]

    return _TOKEN.sub(rewrite, line)


def _special_bits(kind: str, literal: str) -> int:
    infinity, quiet, sign = _SPECIAL[kind]
    bits = infinity | (sign if literal[0] == "-" else 0)
    if "nan" in literal:
        payload = int(literal[literal.index("(") + 1 : -1], 16) if "(" in literal else 0
        bits |= payload | (0 if "snan" in literal else quiet)
    return bits


def _decimal_bits(kind: str, value: float) -> int:
    if kind == "bfloat":
        single: int = struct.unpack("I", struct.pack("f", value))[0]
        return (single + 0x7FFF + (single >> 16 & 1)) >> 16
    pack, unpack = _FORMAT[kind]
    bits: int = struct.unpack(unpack, struct.pack(pack, value))[0]
    return bits


def _literal(kind: str, bits: int) -> str:
    if kind == "half":
        return f"0xH{bits:04X}"
    if kind == "bfloat":
        return f"0xR{bits:04X}"
    if kind == "float":
        bits = _widened(bits)
    return f"0x{bits:016X}"


def _widened(bits: int) -> int:
    """Return a float's bits as a double's; a NaN keeps its payload, quiet or signalling."""
    if bits & 0x7F800000 == 0x7F800000:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    value: int = struct.unpack(
        "Q", struct.pack("d", struct.unpack("f", struct.pack("I", bits))[0])
    )[0]
    return value

"""Which vectors, instructions and types an architecture has, by LLVM's feature names."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

from metadef.device.spec import DeviceSpec, Instruction

_X86 = ("x86_64", "i386", "i686")
_ARM = ("aarch64", "arm64")
_RISCV = ("riscv64",)


@dataclass(frozen=True)
class _Rule:
    """On `architectures` with all `features`, and none of `without`, there is `instruction`."""

    architectures: tuple[str, ...]
    features: frozenset[str]
    instruction: Instruction
    without: frozenset[str] = frozenset()


def _fma(element: str) -> Instruction:
    return Instruction("fma", element, element, element, 1, "llvm.fma")


def _dot(lhs: str, rhs: str, accumulator: str, depth: int, intrinsic: str) -> Instruction:
    return Instruction("dot", lhs, rhs, accumulator, depth, intrinsic)


def _x86(features: str, instruction: Instruction, without: str = "") -> _Rule:
    return _Rule(_X86, frozenset(features.split()), instruction, frozenset(without.split()))


def _arm(features: str, instruction: Instruction) -> _Rule:
    return _Rule(_ARM, frozenset(features.split()), instruction)


def _riscv(features: str, instruction: Instruction) -> _Rule:
    return _Rule(_RISCV, frozenset(features.split()), instruction)


_RULES = (
    _x86("fma", _fma("f32")),
    _x86("fma", _fma("f64")),
    _x86("avx512fp16", _fma("f16")),
    _x86("avx512vnni", _dot("ui8", "i8", "i32", 4, "llvm.x86.avx512.vpdpbusd.512")),
    _x86("avx512vnni", _dot("i16", "i16", "i32", 2, "llvm.x86.avx512.vpdpwssd.512")),
    _x86("avx512bf16", _dot("bf16", "bf16", "f32", 2, "llvm.x86.avx512bf16.dpbf16ps.512")),
    _x86("avxvnni", _dot("ui8", "i8", "i32", 4, "llvm.x86.avx512.vpdpbusd.256"), "avx512vnni"),
    _x86("avxvnniint8", _dot("i8", "i8", "i32", 4, "llvm.x86.avx2.vpdpbssd.256")),
    _arm("neon", _fma("f32")),
    _arm("neon", _fma("f64")),
    _arm("fullfp16", _fma("f16")),
    _arm("dotprod", _dot("i8", "i8", "i32", 4, "llvm.aarch64.neon.sdot")),
    _arm("dotprod", _dot("ui8", "ui8", "i32", 4, "llvm.aarch64.neon.udot")),
    _arm("i8mm", _dot("ui8", "i8", "i32", 4, "llvm.aarch64.neon.usdot")),
    _arm("bf16", _dot("bf16", "bf16", "f32", 2, "llvm.aarch64.neon.bfdot")),
    _riscv("v", _fma("f32")),
    _riscv("v", _fma("f64")),
    _riscv("zvfh", _fma("f16")),
)


def find_instructions(architecture: str, features: Set[str]) -> tuple[Instruction, ...]:
    """Return the multiply-accumulate instructions of a CPU, `features` being those it has."""
    return tuple(
        rule.instruction
        for rule in _RULES
        if architecture in rule.architectures
        and rule.features <= features
        and not rule.without & features
    )


def find_vectors(architecture: str, features: Set[str]) -> tuple[int, int]:
    """Return the width in bits and the number of vector registers.

    SVE counts as its NEON part: code of a fixed width must run on any width of SVE. A vector of
    RISC-V is as wide as its `zvl` feature promises.
    """
    if architecture in _X86:
        if "avx512f" in features:
            return 512, 32
        return (256 if "avx" in features else 128), 8 if architecture != "x86_64" else 16
    if architecture in _RISCV:
        promised = [int(f[3:-1]) for f in features if re.fullmatch(r"zvl\d+b", f)]
        return max(128, *promised, 0), 32
    if architecture in _ARM:
        return 128, 32
    return 128, 16


def native_types(architecture: str, features: Set[str]) -> tuple[str, ...]:
    """Return the element types that the CPU adds and multiplies without conversion."""
    half = {"avx512fp16"} if architecture in _X86 else {"fullfp16", "zvfh"}
    usual = ("i1", "i8", "ui8", "i16", "i32", "i64", "f32", "f64")
    return (*usual, "f16") if half & features else usual


def converts_halves(spec: DeviceSpec) -> bool:
    """Tell whether a device has instructions that convert vectors of f16 to f32 and back."""
    architecture = spec.triple.partition("-")[0]
    if architecture in _ARM:
        return True
    some = {"f16c", "avx512f"} if architecture in _X86 else {"zvfhmin", "zvfh"}
    enabled = {feature[1:] for feature in spec.features.split(",") if feature.startswith("+")}
    return bool(some & enabled)


def overwrites_operands(spec: DeviceSpec) -> bool:
    """Tell whether a device's vector instructions write to one of their operands, and none spreads
    a scalar over all lanes as it loads it: SSE, whose vectors are of 128 bits as AVX's can be."""
    wider = any(feature.startswith("+avx") for feature in spec.features.split(","))
    return spec.triple.partition("-")[0] in _X86 and spec.vector_bits <= 128 and not wider

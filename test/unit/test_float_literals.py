"""Float literals of a newer LLVM, rewritten for llvmlite's."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from metadef.codegen.float_literals import for_llvm_22


@pytest.mark.parametrize(
    ("printed", "rewritten"),
    [
        ("fadd float %0, f0x3FB8AA3B", "fadd float %0, 0x3FF7154760000000"),
        ("fadd float %0, 1.100000e+00", "fadd float %0, 0x3FF19999A0000000"),
        ("fadd float %0, 3.141600e-40", "fadd float %0, 0x37BB5E0000000000"),
        ("fadd double %0, 1.100000e+00", "fadd double %0, 1.100000e+00"),
        ("fadd double %0, f0x400921FB53C8D4F1", "fadd double %0, 0x400921FB53C8D4F1"),
        ("fadd double %0, -inf", "fadd double %0, 0xFFF0000000000000"),
        ("fadd float %0, +qnan", "fadd float %0, 0x7FF8000000000000"),
        ("fadd float %0, +snan(0x1)", "fadd float %0, 0x7FF0000020000000"),
        ("fadd half %0, 3.141400e-03", "fadd half %0, 0xH1A6F"),
        ("fadd bfloat %0, +inf", "fadd bfloat %0, 0xR7F80"),
        ("fadd bfloat %0, 3.143310e-03", "fadd bfloat %0, 0xR3B4E"),
    ],
)
def test_keeps_the_bits(printed: str, rewritten: str) -> None:
    assert for_llvm_22(printed) == rewritten
    kind = printed.split()[1]
    llvm.parse_assembly(f"define void @f({kind} %0) {{\n%2 = {rewritten}\nret void\n}}")


def test_leaves_names_and_strings_alone() -> None:
    text = '@inf = constant [9 x i8] c"float 1.1"\n; %nan'
    assert for_llvm_22(text) == text

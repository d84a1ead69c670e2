"""The compiler's code leaves memory when a model is compiled, and comes back when it is needed."""

from pathlib import Path

import pytest
import torch

import metadef
from metadef.codegen.resident_code import code_ranges, give_back_code

MAPS = """\
1000-2000 r--p 00000000 08:01 7 /site/llvmlite/binding/libllvmlite.so
2000-5000 r-xp 00001000 08:01 7 /site/llvmlite/binding/libllvmlite.so
5000-6000 r--p 00004000 08:01 7 /site/llvmlite/binding/libllvmlite.so
6000-7000 rw-p 00005000 08:01 7 /site/llvmlite/binding/libllvmlite.so
7000-8000 r-xp 00000000 08:01 8 /site/torch/lib/libtorch_cpu.so
8000-9000 r-xp 00000000 00:00 0
"""


def test_takes_code_and_what_no_loader_writes_to() -> None:
    assert list(code_ranges(MAPS)) == [(0x1000, 0x2000), (0x2000, 0x5000)]


def test_compiles_again_after_its_code_has_left() -> None:
    x = torch.randn(3, 4)
    for scale in (2.0, 3.0):
        compiled = metadef.compile(lambda x, scale=scale: (x * scale).exp(), (x,))
        torch.testing.assert_close(compiled(x), (x * scale).exp())
        assert "math.exp" in compiled.mlir("lower-to-linalg")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is resident")
def test_code_is_no_longer_resident() -> None:
    metadef.compile(lambda x: x + 1, (torch.zeros(2),)).mlir("assembly")
    before = _resident_kib()
    give_back_code()
    assert _resident_kib() < before / 2


def _resident_kib() -> int:
    ranges = {f"{start:x}" for start, _ in code_ranges(Path("/proc/self/maps").read_text())}
    total, counts = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first = line.split(maxsplit=1)[0]
        if not first.endswith(":"):
            counts = first.partition("-")[0].lstrip("0") in ranges
        elif counts and first == "Rss:":
            total += int(line.split()[1])
    return total

"""No kernel touches memory beside its buffers."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parent.parent / "guarded_memory.py"


@pytest.mark.parametrize("side", ["start", "end"])
def test_no_kernel_touches_memory_beside_its_buffers(side: str) -> None:
    process = subprocess.run(
        [sys.executable, str(PROGRAM), side], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, f"{process.stdout.splitlines()[-1:]} {process.stderr[-2000:]}"

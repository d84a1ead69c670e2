"""The peak of memory counts what this process and its children touch, and forgets nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from metadef.cli.memory_peak import MemoryPeak

_TOUCH = "import time; block = bytearray(b'x') * (64 << 20); time.sleep(0.5)"


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="Linux tells it")
def test_children_count_as_long_as_they_were_there() -> None:
    with MemoryPeak() as nothing:
        pass
    with MemoryPeak() as memory:
        subprocess.run([sys.executable, "-c", _TOUCH], check=True)
    assert memory.added_mib > nothing.added_mib + 48

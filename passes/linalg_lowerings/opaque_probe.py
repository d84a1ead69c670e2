"""Asks another process whether torch-mlir lowers a module: some input makes it abort, not fail.

The process starts at the first question and stays; when it dies, that is the answer, and the next
question starts another.
"""

from __future__ import annotations

import atexit
import json
import subprocess
import sys
import threading
from functools import lru_cache

_lock = threading.Lock()
_process: subprocess.Popen[str] | None = None


@lru_cache(maxsize=4096)
def probe(text: str) -> str | None:
    """Return why torch-mlir cannot lower a module of torch ops, or None if it can."""
    global _process
    with _lock:
        if _process is None:
            _process = _start()
        assert _process.stdin is not None and _process.stdout is not None
        try:
            _process.stdin.write(json.dumps(text) + "\n")
            _process.stdin.flush()
            answer = _process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            _stop()
            return "torch-mlir aborts on it"
    reason: str | None = json.loads(answer)
    return reason


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "metadef.passes.linalg_lowerings.opaque_probe"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


@atexit.register
def _stop() -> None:
    global _process
    if _process is not None:
        _process.kill()
        _process.wait()
        for stream in (_process.stdin, _process.stdout):
            if stream is not None:
                stream.close()
        _process = None


def _serve() -> None:
    from .torch_mlir_path import refusal

    for line in sys.stdin:
        print(json.dumps(refusal(json.loads(line))), flush=True)


if __name__ == "__main__":
    _serve()

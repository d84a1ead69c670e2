"""Keeps measurements: JSON lines in bench/results/, each with machine, date, commit and command."""

from __future__ import annotations

import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"


def circumstances() -> dict[str, Any]:
    """Return what every record says: date, commit, machine, load when it began, command."""
    import torch

    from metadef.device.probe import probe

    device = probe()
    command = [os.path.relpath(sys.argv[0], ROOT), *sys.argv[1:]]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "machine": f"{device.name}, {device.cores} cores ({device.cpu})",
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "command": shlex.join(command),
    }


def keep(name: str, records: list[dict[str, Any]]) -> Path:
    """Append records to bench/results/<name>.jsonl; return the file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.jsonl"
    with path.open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    return path


def _commit() -> str:
    """Return the commit that is checked out, with `+` where files differ from it."""

    def git(*args: str) -> str:
        command = ["git", "-C", str(ROOT), *args]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

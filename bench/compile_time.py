#!/usr/bin/env python3
"""Measures how long BERT-base with 12 layers takes to compile, and what that adds to memory.

    bench/compile_time.py

Each round compiles in new processes, in turn: Metadef with an empty cache, Metadef with the cache
that this left, Inductor with an empty cache. Seconds are from the call of the compiler to the end
of the model's first call; imports are not counted. Memory is the peak of the process and those that
it starts, imports counted, above what the model's process had. The records go to
bench/results/compile_time.jsonl.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from record import circumstances, keep
from rich.table import Table

from metadef.cli.console import progress_bar, stdout
from metadef.cli.memory_peak import MemoryPeak
from metadef.cli.usage import count

#: what is measured, and what loads the compiler: a model that is kept needs little of ours
_WAYS = {
    "metadef cold": "metadef.frontend.compiler",
    "metadef warm": "metadef.frontend.compiled_model",
    "inductor cold": "torch._inductor.compile_fx",
}


def main() -> int:
    """Measure, print the table, keep the records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=count, default=3, help="processes of each kind (3)")
    parser.add_argument("--threads", type=count, default=os.cpu_count(), help="threads (all)")
    parser.add_argument("--no-record", action="store_true", help="keep no record")
    parser.add_argument("--one", choices=_WAYS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(compile_once(args.one, args.threads)))
        return 0
    where = circumstances()
    records = []
    with progress_bar("compiling") as tell:
        for number in range(args.rounds):
            with tempfile.TemporaryDirectory() as folder:
                for done, way in enumerate(_WAYS):
                    tell(way, number * len(_WAYS) + done, args.rounds * len(_WAYS))
                    found = _in_process(way, args.threads, Path(folder))
                    records.append(where | {"way": way, "threads": args.threads} | found)
    if not args.no_record:
        keep("compile_time", records)
    stdout().print(_table(records))
    return 0


def _in_process(way: str, threads: int, folder: Path) -> dict[str, Any]:
    caches = {
        "METADEF_CACHE_DIR": str(folder / "metadef"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "HF_HUB_OFFLINE": "1",
    }
    command = [sys.executable, __file__, "--one", way, "--threads", str(threads)]
    process = subprocess.run(
        command, env={**os.environ, **caches}, stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return found


def compile_once(way: str, threads: int) -> dict[str, float]:
    """Compile in this process; return seconds, and MiB added beside the weights."""
    import torch

    from metadef.cli.demo import bert_base

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = bert_base()
    weights = sum(t.nbytes for t in model.module.state_dict().values()) / 2**20
    model.module(*model.args)
    found = {"weights_mib": weights}
    before = 0.0

    def note(stage: str, done: int, total: int) -> None:
        if stage == "import" and done == total:
            found["import_adds_mib"] = _resident_mib() - before

    with torch.no_grad(), MemoryPeak() as memory:
        importlib.import_module(_WAYS[way])
        before = _resident_mib()
        start = time.perf_counter()
        if way == "inductor cold":
            compiled: Any = torch.compile(model.module)
        else:
            import metadef

            compiled = metadef.compile(
                model.module, model.args, model.kwargs, threads=threads, progress=note
            )
        compiled(*model.args)
        found["seconds"] = time.perf_counter() - start
    found["compile_adds_mib"] = memory.added_mib
    return found


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _table(records: list[dict[str, Any]]) -> Table:
    table = Table(title="BERT-base, 12 layers: medians")
    table.add_column("")
    for title in ("seconds", "import adds MiB", "compile adds MiB", "weights MiB"):
        table.add_column(title, justify="right")
    for way in _WAYS:
        found = [r for r in records if r["way"] == way]
        imported = [r["import_adds_mib"] for r in found if "import_adds_mib" in r]
        table.add_row(
            way,
            f"{median(r['seconds'] for r in found):.1f}",
            f"{median(imported):.0f}" if imported else "",
            f"{median(r['compile_adds_mib'] for r in found):.0f}",
            f"{found[0]['weights_mib']:.0f}",
        )
    cold, warm, inductor = ([r["seconds"] for r in records if r["way"] == way] for way in _WAYS)
    table.caption = (
        f"warm / cold {_ratio(warm, cold):.2f}, metadef cold / inductor cold "
        f"{_ratio(cold, inductor):.2f}: medians over rounds"
    )
    return table


def _ratio(some: list[float], others: list[float]) -> float:
    return median(a / b for a, b in zip(some, others, strict=True))


if __name__ == "__main__":
    sys.exit(main())

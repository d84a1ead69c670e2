#!/usr/bin/env python3
"""Measures models side by side: eager, Inductor and Metadef in turn, one process for each model.

    bench/run.py --models zoo --threads 1,2

`speed-up` is the median over rounds of the other's time over ours: over 1, ours is faster. A model
whose numbers differ from eager's is not measured. The records go to bench/results/run.jsonl.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from functools import partial
from typing import Any

from record import circumstances, keep
from rich.table import Table

from metadef.cli.console import progress_bar, stdout
from metadef.cli.usage import count, counts
from metadef.diagnostics import MetadefError


def main() -> int:
    """Measure, print the table, keep the records; 1 when a model failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--models", default="zoo,own", help="names of models, or zoo, own (default: zoo,own)")
    add("--against", default="eager,inductor", help="peers (default: eager,inductor)")
    add("--threads", type=counts, default=[1, 2], help="numbers of threads (default: 1,2)")
    add("--rounds", type=count, default=20, help="slices of each program (default: 20)")
    add("--no-record", action="store_true", help="keep no record of the measurements")
    add("--one", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        return measure_one(args.models, args.against.split(","), args.threads[0], args.rounds)
    return measure_all(args)


def measure_all(args: argparse.Namespace) -> int:
    """Measure each model with each number of threads in a process of its own."""
    from workloads import names_of

    try:
        names = names_of(args.models)
    except MetadefError as error:
        print(f"bench/run.py: error: {error}", file=sys.stderr)
        return 2
    where = circumstances()
    records: list[dict[str, Any]] = []
    jobs = [(name, threads) for threads in args.threads for name in names]
    with progress_bar("measuring") as tell:
        for done, (name, threads) in enumerate(jobs):
            tell(f"{name}, {threads} thread(s)", done, len(jobs))
            found = [where | record for record in _in_process(name, threads, args)]
            if not args.no_record:
                keep("run", found)
            records += found
    console = stdout()
    console.print(_table(records))
    for line in _means(records):
        console.print(line)
    failed = [r for r in records if "failed" in r]
    for r in failed:
        console.print(f"{r['model']}, {r['threads']} thread(s): {r['failed']}", markup=False)
    return 1 if failed else 0


def _in_process(name: str, threads: int, args: argparse.Namespace) -> list[dict[str, Any]]:
    command = [sys.executable, __file__, "--one", "--models", name, "--threads", str(threads)]
    command += ["--against", args.against, "--rounds", str(args.rounds)]
    process = subprocess.run(command, capture_output=True, text=True)
    lines = [line for line in process.stdout.splitlines() if line.startswith("{")]
    if process.returncode == 0:
        return [json.loads(line) for line in lines]
    said = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    return [{"model": name, "threads": threads, "failed": said}]


def measure_one(name: str, against: list[str], threads: int, rounds: int) -> int:
    """Measure one model; print a line of JSON for each program."""
    from dataclasses import asdict

    import torch
    from workloads import load

    from metadef.api import compile
    from metadef.cli.commands.bench import OURS, measure
    from metadef.cli.numbers import differences, results, worst
    from metadef.cli.peers import build_peer

    torch.set_num_threads(threads)
    model = load(name)

    def ours() -> Any:
        compiled = compile(model.module, model.args, model.kwargs, threads=threads)
        found = worst(differences(*results(model, compiled)))
        if not found.right:
            raise MetadefError(
                f"wrong numbers in {found.output} ({found.about}): relative error "
                f"{found.error:.1e}, expected at most {found.tolerance:.0e}"
            )
        return compiled

    builders = {peer: partial(build_peer, peer, model) for peer in against} | {OURS: ours}
    try:
        measured = measure(model, builders, threads=threads, rounds=rounds)
    except MetadefError as error:
        print(f"error: {error}".splitlines()[0], file=sys.stderr)
        return 1
    for measurement in measured:
        print(json.dumps({"model": name} | asdict(measurement)))
    return 0


def _table(records: list[dict[str, Any]]) -> Table:
    good = [r for r in records if "failed" not in r]
    programs = list(dict.fromkeys(r["program"] for r in good))
    peers = [p for p in programs if p != "metadef"]
    table = Table(title="medians in ms, compile times in s; speed-up over 1: metadef is faster")
    for title in ("model", "threads", *programs, *(f"speed-up over {p}" for p in peers)):
        table.add_column(title, justify="left" if title == "model" else "right")
    for title in (f"{p} compiles" for p in programs if p != "eager"):
        table.add_column(title, justify="right")
    for key in dict.fromkeys((r["model"], r["threads"]) for r in good):
        row = {r["program"]: r for r in good if (r["model"], r["threads"]) == key}
        table.add_row(
            key[0],
            str(key[1]),
            *(f"{row[p]['p50']:.3f}" for p in programs),
            *(f"{row[p]['speed_up']:.2f}" for p in peers),
            *(f"{row[p]['compile_seconds']:.1f}" for p in programs if p != "eager"),
        )
    return table


def _means(records: list[dict[str, Any]]) -> list[str]:
    """Return a line for each peer and number of threads: the geometric mean of the speed-ups."""
    groups: dict[tuple[int, str], list[float]] = {}
    for r in records:
        if "failed" not in r and r["program"] != "metadef":
            groups.setdefault((r["threads"], r["program"]), []).append(r["speed_up"])
    return [
        f"{threads} thread(s), over {peer}: geometric mean "
        f"{math.exp(sum(map(math.log, found)) / len(found)):.2f}, least {min(found):.2f}, "
        f"{len(found)} models"
        for (threads, peer), found in groups.items()
    ]


if __name__ == "__main__":
    sys.exit(main())

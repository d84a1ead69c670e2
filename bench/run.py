#!/usr/bin/env python3
"""Measures rows side by side: Metadef, its peers and the machine's limits, a process each, in turn.

    bench/run.py --rows table --against eager,onnxruntime --threads 1,2

A program whose numbers differ from eager's is not timed. The peers but eager and Inductor need
`pip install 'metadef[bench]'`. The records go to bench/results/run.jsonl.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from record import circumstances, keep
from summary import Summary, mean_lines, summaries

from metadef.cli.bench_process import LIMITS, OURS
from metadef.cli.console import progress_bar, stdout
from metadef.cli.peers import PEERS, peers_named
from metadef.cli.side_by_side import Job, Measured, measure
from metadef.cli.usage import UsageError, count, counts
from metadef.diagnostics import MetadefError


def main() -> int:
    """Measure, print the table, keep the records; 1 when Metadef failed on a row."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--rows", default="table,models", help="rows, or table, models, zoo (table,models)")
    add("--against", default=",".join(PEERS), help="peers (default: all)")
    add("--threads", type=counts, default=[1, 2], help="numbers of threads (default: 1,2)")
    add("--rounds", type=count, default=9, help="slices of each program (default: 9)")
    add("--slice", type=float, default=0.2, help="seconds of a slice (default: 0.2)")
    add("--timeout", type=count, default=900, help="seconds for building a program (900)")
    add("--no-record", action="store_true", help="keep no record of the measurements")
    args = parser.parse_args()
    try:
        return measure_all(args)
    except MetadefError as error:
        print(f"bench/run.py: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


def measure_all(args: argparse.Namespace) -> int:
    """Measure each row with each number of threads."""
    from workloads import names_of

    names = names_of(args.rows)
    peers = list(dict.fromkeys(["eager", *peers_named(args.against)]))
    where = circumstances()
    records: list[dict[str, Any]] = []
    for name in names:
        for threads in args.threads:
            found = [where | record for record in _measure_row(name, threads, peers, args)]
            if not args.no_record:
                keep("run", found)
            records += found
    console = stdout()
    found = summaries(records)
    console.print(table(found))
    for line in mean_lines(found):
        console.print(line)
    failed = [r for r in records if r.get("failed")]
    for r in failed:
        line = f"{r['row']}, {r['threads']} thread(s), {r['program']}: {r['failed']}"
        console.print(line, markup=False)
    return 1 if any(r["program"] == OURS for r in failed) else 0


def _measure_row(
    name: str, threads: int, peers: list[str], args: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    """Yield a record for each program, one of them the limits.

    With several threads, Metadef with one of them takes part too: what more of them bring is a
    ratio as well.
    """
    from workloads import row

    jobs = [Job(program, threads) for program in (*peers, OURS, LIMITS)]
    if threads > 1:
        jobs.append(Job(OURS, 1))
    about = row(name)
    with progress_bar(f"{name}, {threads} thread(s)") as tell:
        measured = measure(
            f"workloads:{name}",
            jobs,
            rounds=args.rounds,
            slice_seconds=args.slice,
            fallback="error",
            build_timeout=args.timeout,
            warm=True,
            traffic=about.traffic,
            tell=tell,
        )
    for m in measured:
        yield {
            "row": name,
            "beside_threads": threads,
            "limit": about.limit,
            "traffic": about.traffic,
            "program": m.job.program,
            "threads": m.job.threads,
            **_data(m),
        }


def _data(m: Measured) -> dict[str, Any]:
    """Return what a job gave, as data; the lists have an entry for each round that it was in."""
    if m.failed is not None:
        return {"failed": m.failed}
    if m.job.program == LIMITS:
        return {"rounds": list(m.limits), **_by_name(m.limits)}
    return {
        "rounds": list(m.slices),
        "ms": [round(ms, 6) for ms in m.medians.values()],
        **{f"p{percent}": round(m.percentile(percent), 6) for percent in (50, 90, 99)},
        **{key: round(value, 9) for key, value in m.built.items()},
        "warm_compile_seconds": m.warm_compile_seconds,
        "run_peak_mib": m.run_peak_mib,
        "cores": [round(cores, 3) for cores in m.cores],
        "others": [round(others, 3) for others in m.others],
    }


def _by_name(limits: dict[int, dict[str, float]]) -> dict[str, list[float]]:
    names = next(iter(limits.values()), {})
    return {name: [found[name] for found in limits.values()] for name in names}


def table(found: list[Summary]) -> Any:
    """Return the table of the terminal; docs/performance.md has more."""
    from rich.table import Table

    shown = Table(title="medians in ms; ratios over 1: Metadef is faster")
    for title in ("row", "threads", "metadef", "eager", "over eager", "best peer", "over it"):
        shown.add_column(title, justify="left" if title in ("row", "best peer") else "right")
    for title in ("% of limit", "over 1 thread", "cold s", "warm s", "inductor s", "MiB", "others"):
        shown.add_column(title, justify="right")
    for s in found:
        shown.add_row(
            s.row,
            str(s.threads),
            _number(s.ms, 3),
            _number(s.eager_ms, 3),
            _number(s.over.get("eager"), 2),
            s.best_peer or "",
            _number(s.over_best, 2),
            "" if s.of_limit is None else f"{s.of_limit:.0%}",
            _number(s.over_one_thread, 2),
            _number(s.compile_seconds.get("metadef"), 1),
            _number(s.warm_compile_seconds, 1),
            _number(s.compile_seconds.get("inductor"), 1),
            _number(s.running_mib.get("metadef"), 0),
            _number(s.others, 2),
        )
    return shown


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


if __name__ == "__main__":
    sys.exit(main())

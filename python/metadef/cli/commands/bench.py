"""`metadef bench`: measures a compiled model side by side with others."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from metadef.cli.commands.compile import add_compile_options
from metadef.cli.console import progress_bar, stdout
from metadef.cli.models import add_model
from metadef.cli.usage import count, counts

if TYPE_CHECKING:
    from metadef.cli.side_by_side import Measured

HELP = "measure side by side with eager and other compilers"
DESCRIPTION = (
    "Measure a model, compiled, side by side with others: a process for each, slices of time in "
    "turn, so that all meet the same noise. Caches are cold, and every tensor is compared with "
    "eager's first. `speed-up` is the median over rounds of the other's time over ours: over 1, "
    "ours is faster."
)

OURS = "metadef"


@dataclass(frozen=True)
class Measurement:
    """One program with so many threads: times in ms, and how many times faster ours is.

    `running_mib` is the most that its process held while it ran, and `compiling_mib` what
    compiling added to that at most, its imports and the model apart.
    """

    program: str
    threads: int
    compile_seconds: float
    compiling_mib: float
    running_mib: float
    p50: float
    p90: float
    p99: float
    calls_per_second: float
    speed_up: float | None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_compile_options(parser)
    parser.add_argument(
        "--threads", metavar="N,M", type=counts, help="numbers of threads (default: torch's)"
    )
    parser.add_argument(
        "--against",
        metavar="A,B",
        default="eager",
        help="eager, inductor, inductor-max, onnxruntime, openvino, iree (default: eager)",
    )
    parser.add_argument("--rounds", metavar="N", type=count, default=20, help="slices each (20)")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure with each number of threads; print the table. 1 when a program failed."""
    import torch

    from metadef.cli.peers import peers_named
    from metadef.cli.side_by_side import Job, measure

    programs = [*peers_named(args.against), OURS]
    measured: list[Measured] = []
    for threads in args.threads or [torch.get_num_threads()]:
        with progress_bar(f"measuring {args.model}") as tell:
            measured += measure(
                args.model,
                [Job(program, threads) for program in programs],
                rounds=args.rounds,
                device=args.device,
                fallback=args.fallback,
                plan=args.plan,
                error_limit=args.error_limit,
                tell=tell,
            )
    found = _measurements(measured)
    if args.json:
        print(json.dumps([asdict(m) for m in found], indent=2))
    else:
        stdout().print(_table(args.model, found))
    failed = [m for m in measured if m.failed is not None]
    for m in failed:
        print(f"{m.job.program}, {m.job.threads} thread(s): {m.failed}", file=sys.stderr)
    return 1 if failed else 0


def _measurements(measured: list[Measured]) -> list[Measurement]:
    from metadef.cli.side_by_side import ratio

    good = [m for m in measured if m.failed is None]
    ours = {m.job.threads: m for m in good if m.job.program == OURS}
    found = []
    for m in good:
        own = ours.get(m.job.threads)
        found.append(
            Measurement(
                program=m.job.program,
                threads=m.job.threads,
                compile_seconds=0.0 if m.job.program == "eager" else m.built["compile_seconds"],
                compiling_mib=m.built["compile_adds_mib"],
                running_mib=m.run_peak_mib,
                p50=m.percentile(50),
                p90=m.percentile(90),
                p99=m.percentile(99),
                calls_per_second=m.calls_per_second,
                speed_up=None if own is None else ratio(m, own),
            )
        )
    return found


def _table(model: str, found: list[Measurement]) -> Table:
    table = Table(title=f"{model}: latency in ms")
    table.add_column("threads", justify="right")
    table.add_column("program")
    for title in ("P50", "P90", "P99", "calls/s", "speed-up of metadef"):
        table.add_column(title, justify="right")
    for title in ("running MiB", "compile s", "compiling MiB"):
        table.add_column(title, justify="right")
    for m in found:
        compiles = m.program != "eager"
        table.add_row(
            str(m.threads),
            m.program,
            *(f"{value:.3f}" for value in (m.p50, m.p90, m.p99)),
            f"{m.calls_per_second:.1f}",
            "" if m.program == OURS or m.speed_up is None else f"{m.speed_up:.2f}",
            f"{m.running_mib:.0f}",
            f"{m.compile_seconds:.2f}" if compiles else "",
            f"{m.compiling_mib:.0f}" if compiles else "",
        )
    return table

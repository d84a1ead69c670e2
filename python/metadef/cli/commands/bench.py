"""`metadef bench`: measures a compiled model side by side with others."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.table import Table

from metadef.cli.commands.compile import add_compile_options, compile_for
from metadef.cli.console import progress_bar, stdout
from metadef.cli.models import Model, load_model
from metadef.cli.timing import Series, interleave, ratio
from metadef.cli.usage import UsageError, count, counts
from metadef.diagnostics import near_names

Program = Callable[..., Any]

HELP = "measure side by side with eager and inductor"
DESCRIPTION = (
    "Measure a model, compiled, side by side with others: slices of time in turn, so that all "
    "meet the same noise. `speed-up` is the median over rounds of the other's time over ours: "
    "over 1, ours is faster."
)

OURS = "metadef"


@dataclass(frozen=True)
class Measurement:
    """One program with so many threads: times in ms, and how many times faster ours is."""

    program: str
    threads: int
    compile_seconds: float
    p50: float
    p90: float
    p99: float
    calls_per_second: float
    speed_up: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_compile_options(parser)
    parser.add_argument(
        "--threads", metavar="N,M", type=counts, help="numbers of threads (default: torch's)"
    )
    parser.add_argument(
        "--against", metavar="A,B", default="eager", help="eager, inductor (default: eager)"
    )
    parser.add_argument("--rounds", metavar="N", type=count, default=20, help="slices each (20)")
    parser.add_argument("--json", action="store_true", help="print the measurements as JSON")


def run(args: argparse.Namespace) -> int:
    """Measure with each number of threads; print the table."""
    import torch

    from metadef.cli.peers import build_peer

    against = _peers(args.against)
    model = load_model(args.model)
    found = []
    for threads in args.threads or [torch.get_num_threads()]:
        args.threads = threads
        builders: dict[str, Callable[[], Program]] = {
            name: partial(build_peer, name, model) for name in against
        }
        builders[OURS] = partial(compile_for, args, model)
        found += measure(model, builders, threads=threads, rounds=args.rounds)
    if args.json:
        print(json.dumps([asdict(m) for m in found], indent=2))
    else:
        stdout().print(_table(model, found))
    return 0


def measure(
    model: Model, builders: Mapping[str, Callable[[], Program]], *, threads: int, rounds: int
) -> list[Measurement]:
    """Build each program and call it once, then measure all in turn; `metadef` is one of them.

    Raises:
        MetadefError: the model is at fault, or a peer fails on it.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    programs: dict[str, Callable[[], object]] = {}
    seconds: dict[str, float] = {}
    try:
        with torch.no_grad():
            for name, build in builders.items():
                start = time.perf_counter()
                programs[name] = partial(build(), *model.args, **model.kwargs)
                programs[name]()
                seconds[name] = 0.0 if name == "eager" else time.perf_counter() - start
            with progress_bar(f"measuring {model.name}") as tell:
                series = interleave(
                    programs,
                    rounds=rounds,
                    on_round=lambda done, total: tell(f"{threads} thread(s)", done, total),
                )
    finally:
        torch.set_num_threads(before)
    return [_measurement(name, threads, seconds[name], series) for name in programs]


def _measurement(name: str, threads: int, seconds: float, series: dict[str, Series]) -> Measurement:
    own = series[name]
    p50, p90, p99 = (own.percentile(p) * 1e3 for p in (50, 90, 99))
    speed_up = ratio(own, series[OURS])
    return Measurement(name, threads, seconds, p50, p90, p99, own.throughput, speed_up)


def _peers(text: str) -> list[str]:
    from metadef.cli.peers import PEERS

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in PEERS:
            near = near_names(name, PEERS) or f"; known are {', '.join(PEERS)}"
            raise UsageError(f"--against: unknown peer '{name}'{near}")
    return names


def _table(model: Model, found: list[Measurement]) -> Table:
    table = Table(title=f"{model.name}: latency in ms")
    table.add_column("threads", justify="right")
    table.add_column("program")
    for title in ("compile s", "P50", "P90", "P99", "calls/s", "speed-up of metadef"):
        table.add_column(title, justify="right")
    for m in found:
        table.add_row(
            str(m.threads),
            m.program,
            f"{m.compile_seconds:.2f}" if m.compile_seconds else "",
            *(f"{value:.3f}" for value in (m.p50, m.p90, m.p99)),
            f"{m.calls_per_second:.1f}",
            "" if m.program == OURS else f"{m.speed_up:.2f}",
        )
    return table

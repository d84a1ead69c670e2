"""`metadef tune`: searches for what suits a model on this machine, and writes it as a plan."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.table import Table

from metadef.cli.commands.compile import add_threads
from metadef.cli.console import stdout
from metadef.cli.devices import add_device
from metadef.cli.models import add_model, load_model
from metadef.cli.usage import count

if TYPE_CHECKING:
    from metadef.tuning.calls import Calls
    from metadef.tuning.result import Tuned
    from metadef.tuning.search import Progress

HELP = "search for what suits a model on this machine; write a plan"
DESCRIPTION = (
    "Search for choices that suit a model better than the compiler's own: algorithms of "
    "convolutions, under --error-limit the types that weights are stored in, then each kernel's "
    "register blocks, tiles and grain. A cost model ranks, the best few are measured beside the "
    "default. What was measured is kept, so that a search that was killed goes on where it was. "
    "Compile with the plan: --plan FILE."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_threads(parser)
    add_device(parser)
    parser.add_argument(
        "--objective",
        metavar="GOAL",
        default="latency",
        help="latency, throughput, memory, energy, or weights: latency=0.7,memory=0.3 (latency)",
    )
    parser.add_argument("--budget", metavar="TIME", default="10m", help="as 90s, 10m or 1h (10m)")
    parser.add_argument(
        "--trials", metavar="N", type=count, default=1000, help="measured trials at most (1000)"
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of what is tried (0)")
    parser.add_argument(
        "--storage",
        metavar="FILE",
        help="where trials are kept: a file, or a URL of SQLAlchemy's (beside the compile cache)",
    )
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="measure kernels on the machines of a Ray cluster; auto: the one that runs here",
    )
    parser.add_argument(
        "--error-limit",
        metavar="ERROR",
        type=float,
        help="relative error of the outputs up to which narrow types of weights are tried (none)",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the plan")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Search; print the table, write the plan."""
    from metadef.plan.files import save
    from metadef.tuning.budget import parse_seconds
    from metadef.tuning.tune import tune

    budget = parse_seconds(args.budget)
    model = load_model(args.model)
    with _display(model.name) as tell:
        tuned = tune(
            model.module,
            model.args,
            model.kwargs,
            dynamic_shapes=model.dynamic_shapes,
            device=args.device,
            threads=args.threads,
            objective=args.objective,
            budget=budget,
            trials=args.trials,
            seed=args.seed,
            storage=args.storage,
            cluster=args.cluster,
            error_limit=args.error_limit,
            progress=tell,
        )
    if args.output is not None:
        save(tuned.plan, Path(args.output))
    if args.json:
        print(json.dumps(as_data(tuned), indent=2))
        return 0
    console = stdout()
    console.print(calls_table(tuned), kernels_table(tuned))
    console.print(_verdict(tuned, args.output), markup=False)
    return 0


def calls_table(tuned: Tuned) -> Table:
    """Return what a call costs, by default and adapted."""
    table = Table(title=f"a call, for {tuned.objective.text}")
    for name in ("", "P50 ms", "P90 ms", "P99 ms", "calls/s", "MiB", "gain"):
        table.add_column(name, justify="left" if not name else "right")
    table.add_row("default, before the search", *_figures(tuned.before), "")
    table.add_row("default, after it", *_figures(tuned.after), "")
    table.add_row("adapted", *_figures(tuned.adapted), f"{tuned.gain:.1%}")
    return table


def kernels_table(tuned: Tuned) -> Table:
    """Return what one run of each kernel that was searched takes, by default and adapted."""
    table = Table(title="kernels, each run alone")
    for name in ("kernel", "result", "runs", "default us", "adapted us", "gain", "trials", "known"):
        table.add_column(name, justify="left" if name in ("kernel", "result") else "right")
    for k in tuned.kernels:
        table.add_row(
            *(k.name, k.shapes[-1] if k.shapes else "", str(k.runs)),
            *(f"{k.default_ns / 1e3:.1f}", f"{k.adapted_ns / 1e3:.1f}", f"{k.gain:.1%}"),
            *(str(k.trials), str(k.known)),
        )
    return table


def as_data(tuned: Tuned) -> dict[str, Any]:
    """Return the result as plain data, for JSON."""
    return {
        "objective": tuned.objective.text,
        "gain": tuned.gain,
        "is_better": tuned.is_better,
        "seconds": tuned.seconds,
        "trials": tuned.trials,
        "error": tuned.error,
        "calls": {
            name: _call_data(getattr(tuned, name)) for name in ("before", "after", "adapted")
        },
        "kernels": [{**vars(k), "gain": k.gain} for k in tuned.kernels],
        "entries": sum(entry.by == "search" for entry in tuned.plan.entries),
    }


def _call_data(calls: Calls) -> dict[str, Any]:
    percentiles = {f"p{p}_ns": calls.percentile(p) for p in (50, 90, 99)}
    return {**percentiles, "throughput": calls.throughput, **vars(calls.cost)}


def _figures(calls: Calls) -> list[str]:
    times = [f"{calls.percentile(p) / 1e6:.3f}" for p in (50, 90, 99)]
    return [*times, f"{calls.throughput:.1f}", f"{calls.memory_bytes / 2**20:.1f}"]


def _verdict(tuned: Tuned, output: str | None) -> str:
    where = f"; {output} has the plan" if output is not None else ""
    tried = f"{tuned.trials} trial(s) in {tuned.seconds:.0f} s"
    if not tuned.is_better:
        return f"{tried}: nothing is better than the default, which the plan keeps{where}"
    changed = sum(entry.by == "search" for entry in tuned.plan.entries)
    error = "" if tuned.error is None else f", outputs off by {tuned.error:.1e}"
    return f"{tried}: {changed} decision(s) changed, {tuned.gain:.1%} less time{error}{where}"


@contextmanager
def _display(name: str) -> Iterator[Callable[[Progress], None]]:
    """Show layer, subject, trials, the best so far and the time left. No terminal, no display."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[state]}", markup=False),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"tuning {name}", total=1.0, state="")

        def tell(p: Progress) -> None:
            left = max(0.0, p.seconds - p.elapsed)
            state = f"{p.trials} trial(s), best {p.best:.1%}, {left:.0f} s left"
            if p.last is not None and p.last.ratio is not None:
                predicted = (
                    "" if p.last.predicted is None else f", predicted {p.last.predicted:.2f}"
                )
                state += f"; last {p.last.ratio:.2f} of the default's time{predicted}"
            bar.update(
                task,
                total=p.seconds,
                completed=min(p.elapsed, p.seconds),
                description=f"{p.layer}: {p.subject[:40]}",
                state=state,
            )

        yield tell

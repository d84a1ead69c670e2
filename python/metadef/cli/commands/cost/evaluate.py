"""`metadef cost evaluate`: says how good the cost model is on kernels that it has not seen."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from metadef.cli.console import stdout
from metadef.cli.cost_options import add_cost_options, cost_model

if TYPE_CHECKING:
    from metadef.cost.model.evaluate import Score

HELP = "show errors and rank correlations on held-out kernels"
DESCRIPTION = (
    "Show for each kind of kernels how far predictions are off (MAPE, and the median) and how well "
    "they rank (Spearman): over all measurements, and over the choices of each kernel. Level one "
    "answers with one size left out; level two is fitted to other kernels than it is judged by. "
    "With --on, the model of the whole table is judged by the kernels of another one."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_cost_options(parser)
    parser.add_argument(
        "--on", metavar="FILE", help="another table, as of metadef device calibrate --model"
    )
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")


def run(args: argparse.Namespace) -> int:
    """Evaluate; print the tables."""
    from metadef.cost.model.evaluate import evaluate, judge
    from metadef.cost.model.fitted import usable
    from metadef.cost.table.table import Table as Measurements
    from metadef.diagnostics import TableError

    model = cost_model(args)
    if args.on is None:
        scores = evaluate(model.measurements, model.spec, model.limits)
    else:
        if not Path(args.on).is_file():
            raise TableError(f"performance table '{args.on}': expected a file, got none")
        with Measurements(Path(args.on)) as other:
            scores = judge(model.fitted, model.measurements, model.mine(other.find()))
    if args.json:
        print(json.dumps([dataclasses.asdict(score) for score in scores]))
        return 0
    for level in dict.fromkeys(score.level for score in scores):
        stdout().print(_table(level, [s for s in scores if s.level == level]))
    learnt = usable(model.measurements)
    flagged = sum(m.flagged for m in learnt)
    print(
        f"of {len(learnt)} measurements {flagged} were noisy: they weigh less in learning, and "
        "judge nothing"
    )
    return 0


def _table(level: str, scores: list[Score]) -> Table:
    table = Table(title=level)
    table.add_column("kind")
    for title in ("kernels", "measurements", "MAPE", "median", "Spearman", "within a kernel"):
        table.add_column(title, justify="right")
    for s in scores:
        ranks = ("-" if rank is None else f"{rank:.3f}" for rank in (s.spearman, s.within))
        counts = (str(s.kernels), str(s.count))
        table.add_row(s.kind, *counts, f"{s.mape:.1%}", f"{s.median:.1%}", *ranks)
    return table

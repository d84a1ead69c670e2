"""`metadef device calibrate`: measures kernels of all kinds for the cost model."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from metadef.cli.console import progress_bar
from metadef.cli.devices import DEVICE_HELP
from metadef.cli.models import load_model
from metadef.cli.usage import UsageError, counts

if TYPE_CHECKING:
    from metadef.calibrate.case import Case

#: choices of each kernel of a model beside its default
_CHOICES = 6
HELP = "measure kernels of all kinds, for the cost model"
DESCRIPTION = (
    "Measure kernels of all kinds on this machine, in sizes that follow from its caches, and keep "
    "the figures in the performance table. What the table has already is measured again only "
    "where it was noisy, so a calibration that was stopped goes on. A full one takes ten to forty "
    "minutes for each number of threads, --quick a minute or two."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument(
        "--device", metavar="DEVICE", default="host", help=f"{DEVICE_HELP}; it must run here"
    )
    parser.add_argument(
        "--threads", metavar="N,M", type=counts, default=[1], help="numbers of threads (1)"
    )
    parser.add_argument("--quick", action="store_true", help="few kernels of each kind, once")
    parser.add_argument(
        "--kinds", metavar="A,B", type=lambda text: text.split(","), help="these kinds alone"
    )
    parser.add_argument(
        "--model",
        metavar="MODEL",
        action="append",
        default=[],
        help="measure the kernels of this model instead, each under several choices; may come "
        "again",
    )
    parser.add_argument(
        "-o", dest="output", metavar="FILE", help="the table (default: in the compile cache)"
    )
    parser.add_argument("--csv", metavar="FILE", help="write all of the table as CSV")
    parser.add_argument("--parquet", metavar="FILE", help="write all of the table as Parquet")
    parser.add_argument(
        "--merge", metavar="FILE", action="append", default=[], help="take over another table"
    )


def model_cases(names: Sequence[str], kinds: Sequence[str] | None) -> list[Case]:
    """Return a case for each model on the command line.

    Raises:
        UsageError: kinds were named, too.
        MetadefError: a model cannot be loaded.
    """
    from metadef.calibrate.case import Case

    if kinds is not None:
        raise UsageError("--kinds: expected without --model, whose kernels are what they are")
    found = []
    for name in names:
        model = load_model(name)
        made = model.module, model.args, model.kwargs
        found.append(Case("model", name, partial(copy.copy, made), _CHOICES))
    return found


def run(args: argparse.Namespace) -> int:
    """Measure; say what was measured."""
    from metadef.calibrate.run import calibrate
    from metadef.cost.table.export import to_csv, to_parquet
    from metadef.cost.table.table import Table
    from metadef.predict.tables import default_table
    from metadef.runtime.host import device_named

    path = Path(args.output) if args.output else default_table()
    with Table(path) as table:
        for other in args.merge:
            print(f"{other}: {table.merge(Path(other))} new measurements")
        spec = device_named(args.device)
        with progress_bar("calibrating", remaining=True) as tell:
            cases = model_cases(args.model, args.kinds) if args.model else None
            done = calibrate(
                spec,
                table,
                threads=args.threads,
                kinds=args.kinds,
                quick=args.quick,
                wanted=cases,
                progress=tell,
            )
        print(
            f"{path}: {done.measured} measurements of {done.cases} cases, {done.flagged} of them "
            f"noisy, {done.failed} failed; the table has {len(table)}"
        )
        if args.csv:
            to_csv(table.find(), Path(args.csv))
        if args.parquet:
            to_parquet(table.find(), Path(args.parquet))
    return 0

"""`metadef device probe`: describes this machine, measuring what it reaches."""

from __future__ import annotations

import argparse
from pathlib import Path

from metadef.cli.console import progress_bar, stdout
from metadef.cli.devices import figures_table, traits_table
from metadef.cli.usage import UsageError, count

HELP = "describe this machine: read its traits, measure what it reaches"
DESCRIPTION = (
    "Read this machine's traits and measure what it reaches, by micro-benchmarks through our own "
    "code generation: multiply-adds of each data type, bandwidth and latency of each memory level, "
    "what threads cost. It takes some ten seconds, on a machine that should do nothing else."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("-o", dest="output", metavar="FILE", help="write the descriptor, as JSON")
    parser.add_argument(
        "--threads",
        metavar="N",
        type=count,
        help="describe N threads of this machine, beside one (default: all)",
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, and none again")
    parser.add_argument(
        "--features-of",
        metavar="NAME",
        help="keep code generation to what a shipped device's CPU has, as x86-64-v2",
    )


def run(args: argparse.Namespace) -> int:
    """Measure; print the tables, write the file."""
    from metadef.device.descriptor import save
    from metadef.device.restrict import restricted
    from metadef.device.shipped import load_device
    from metadef.measure.describe import QUICK, describe
    from metadef.runtime.host import this_device

    if args.output is not None and not Path(args.output).parent.is_dir():
        raise UsageError(f"-o: expected a file in a folder that is there, got '{args.output}'")
    spec = this_device()
    if args.features_of is not None:
        spec = restricted(spec, load_device(args.features_of))
    with progress_bar("measuring") as tell:
        spec = describe(spec, args.threads, effort=QUICK if args.quick else None, progress=tell)
    if args.output is not None:
        save(spec, Path(args.output))
    stdout().print(traits_table(spec), figures_table(spec))
    return 0

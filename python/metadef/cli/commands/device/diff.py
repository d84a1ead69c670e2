"""`metadef device diff`: shows where two devices differ."""

from __future__ import annotations

import argparse

from metadef.cli.console import stdout
from metadef.cli.devices import DEVICE_HELP, difference_tables

HELP = "show where two devices differ"
DESCRIPTION = (
    "Show the traits and the figures in which two devices differ, theoretical beside measured "
    "ones. Of features and types, what each has alone."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    for name in ("first", "second"):
        parser.add_argument(name, metavar=name.upper(), help=DEVICE_HELP)


def run(args: argparse.Namespace) -> int:
    """Print the tables."""
    from metadef.runtime.host import device_named

    names = args.first, args.second
    first, second = map(device_named, names)
    tables = difference_tables(first, second, names)
    for table in tables:
        stdout().print(table)
    if not tables:
        print("no difference")
    return 0

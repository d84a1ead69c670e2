"""`metadef device validate`: checks a descriptor's file."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "check a descriptor's file"
DESCRIPTION = (
    "Check a descriptor's file against the schema and the rules that span fields. "
    "Exit code 1, with the field, the rule and the value, when it is refused."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("file", metavar="FILE", help="a descriptor, as JSON")


def run(args: argparse.Namespace) -> int:
    """Say that it is well; what is wrong is an error."""
    from metadef.device.descriptor import load

    spec = load(Path(args.file))
    print(f"{args.file}: ok, describes '{spec.name}'")
    return 0

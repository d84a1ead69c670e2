"""`metadef plan validate`: checks a plan's form."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "check a plan's form"
DESCRIPTION = (
    "Check that a file is a plan: fields, types, ranges. Whether a device can do what it says is "
    "found out where it is compiled with."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("file", metavar="FILE", help="a plan, as JSON")


def run(args: argparse.Namespace) -> int:
    """Say that it is well; what is wrong is an error."""
    from metadef.plan.files import load

    plan = load(Path(args.file))
    print(f"{args.file}: ok, {len(plan.entries)} decision(s) for '{plan.device.name}'")
    return 0

"""`metadef plan diff`: prints what differs between two plans."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "print what differs between two plans"
DESCRIPTION = (
    "Print the decisions that one of two plans has alone (-, +), and the fields of those that "
    "differ (~). Exit code 1 when something differs."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("old", metavar="OLD", help="a plan, as JSON")
    parser.add_argument("new", metavar="NEW", help="another")


def run(args: argparse.Namespace) -> int:
    """Print the differences; 1 when there are some."""
    from metadef.plan.compare import differences
    from metadef.plan.files import load

    lines = list(differences(load(Path(args.old)), load(Path(args.new))))
    print("\n".join(lines) if lines else "no difference")
    return 1 if lines else 0

"""`metadef plan explain`: prints a plan in words."""

from __future__ import annotations

import argparse
from pathlib import Path

HELP = "say for each decision what was chosen, what lost, and why"
DESCRIPTION = (
    "Print for each decision of a plan what was chosen, what lost, by how much, by whom, and on "
    "what evidence."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("file", metavar="FILE", help="a plan, as JSON")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from metadef.plan.explain import explain
    from metadef.plan.files import load

    print("\n".join(explain(load(Path(args.file)))))
    return 0

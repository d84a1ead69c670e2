"""`metadef plan show`: prints a plan as a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.table import Table

from metadef.cli.console import stdout

HELP = "print a plan's decisions"
DESCRIPTION = "Print the decisions of a plan, one a line."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("file", metavar="FILE", help="a plan, as JSON")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from metadef.plan.decision import choice_text
    from metadef.plan.files import load

    plan = load(Path(args.file))
    print(f"model {plan.model or '?'}; device {plan.device.name} [{plan.device.fingerprint[:12]}]")
    table = Table("kind", "key", "what", "choice", "by")
    for entry in plan.entries:
        table.add_row(
            entry.kind, entry.key[:12], str(entry.what), choice_text(entry.choice), entry.by
        )
    stdout().print(table)
    return 0

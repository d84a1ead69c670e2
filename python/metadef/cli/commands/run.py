"""`metadef run`: runs a compiled model on its example inputs and compares it with eager."""

from __future__ import annotations

import argparse

from rich.table import Table

from metadef.cli.commands.compile import add_compile_options, add_threads, compile_for
from metadef.cli.console import stdout
from metadef.cli.models import add_model, load_model

HELP = "run on the example inputs; compare with eager"
DESCRIPTION = (
    "Compile a model, run it on its example inputs and compare each output with eager. "
    "Exit code 1 when one is wrong."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_threads(parser)
    add_compile_options(parser)
    parser.add_argument(
        "--tolerance",
        metavar="ERROR",
        type=float,
        help="what max|ours - eager| / max|eager| may be (default: by dtype, 1e-4 for float32)",
    )


def run(args: argparse.Namespace) -> int:
    """Run both and print the differences; 1 when one is beyond its tolerance."""
    from metadef.cli.numbers import differences, results, worst

    model = load_model(args.model)
    got, expected = results(model, compile_for(args, model))
    found = differences(got, expected, args.tolerance, args.error_limit)
    table = Table("output", "tensor", "relative error", "allowed", "")
    for d in found:
        mark = "right" if d.right else "WRONG"
        table.add_row(d.output, d.about, f"{d.error:.2e}", f"{d.tolerance:.0e}", mark)
    console = stdout()
    console.print(table)
    console.print(f"max relative error {worst(found).error:.2e}")
    return 0 if all(d.right for d in found) else 1

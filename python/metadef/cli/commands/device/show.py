"""`metadef device show`: prints what is known of a device."""

from __future__ import annotations

import argparse

from metadef.cli.console import stdout
from metadef.cli.devices import DEVICE_HELP, figures_table, traits_table

HELP = "show a device: traits, theoretical beside measured figures"
DESCRIPTION = (
    "Show a device's traits, and what it should reach in theory beside what it was measured to "
    "reach."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("device", metavar="DEVICE", help=DEVICE_HELP)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the descriptor")
    form.add_argument("--dlti", action="store_true", help="print it as MLIR's DLTI attribute")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from metadef.device.descriptor import to_json
    from metadef.runtime.host import device_named

    spec = device_named(args.device)
    if args.json:
        print(to_json(spec), end="")
    elif args.dlti:
        from metadef import ir
        from metadef.device.dlti import to_dlti

        with ir.make_context():
            print(to_dlti(spec))
    else:
        stdout().print(traits_table(spec), figures_table(spec))
    return 0

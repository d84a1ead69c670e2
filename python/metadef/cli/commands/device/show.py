"""`metadef device show`: prints what is known of a device."""

from __future__ import annotations

import argparse

HELP = "print a descriptor"
DESCRIPTION = "Print the descriptor of a device as JSON."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument("device", metavar="DEVICE", help="a descriptor's file, or host")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from metadef.device.descriptor import to_json
    from metadef.runtime.host import device_named

    print(to_json(device_named(args.device)), end="")
    return 0

"""`metadef check`: says for each op of a model who would run it."""

from __future__ import annotations

import argparse
import json

from metadef.cli.devices import add_device
from metadef.cli.models import add_model, load_model

HELP = "say for each op who runs it: native code, linalg, torch"
DESCRIPTION = (
    "Say for each op of a model who would run it: native (metadef's own kernels), linalg "
    "(torch-mlir's lowering, our kernels), or eager (torch), and why."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_device(parser)
    parser.add_argument("--json", action="store_true", help="print a verdict for each op as JSON")


def run(args: argparse.Namespace) -> int:
    """Print the verdicts."""
    from dataclasses import asdict

    from metadef.api import check

    model = load_model(args.model)
    found = check(model.module, model.args, model.kwargs, device=args.device)
    if args.json:
        data = {"counts": found.counts, "ops": [asdict(v) for v in found.verdicts]}
        print(json.dumps(data, indent=2))
    else:
        print(found)
    return 0

"""`metadef plan default`: writes the decisions that the compiler makes of a model by itself."""

from __future__ import annotations

import argparse
from pathlib import Path

from metadef.cli.commands.compile import add_compile_options, add_threads
from metadef.cli.console import progress_bar
from metadef.cli.models import add_model, load_model

HELP = "write a model's decisions by default, to be edited"
DESCRIPTION = (
    "Compile a model and write what the compiler decides of it by itself, said in full. Edit the "
    'choices, say "by": "person" of those, and compile with --plan.'
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="where to (default: print it)")
    add_threads(parser)
    add_compile_options(parser, plan=False)


def run(args: argparse.Namespace) -> int:
    """Compile; write the plan."""
    from metadef.api import compile
    from metadef.frontend.options import empty_plan
    from metadef.plan.files import save, to_json
    from metadef.runtime.host import device_named

    model = load_model(args.model)
    device = device_named(args.device)
    with progress_bar(f"compiling {model.name}") as tell:
        compiled = compile(
            model.module,
            model.args,
            model.kwargs,
            dynamic_shapes=model.dynamic_shapes,
            device=device,
            threads=args.threads,
            fallback=args.fallback,
            progress=tell,
            plan=empty_plan(device),
            error_limit=args.error_limit,
        )
    plan = compiled.default_plan()
    if args.output is None:
        print(to_json(plan), end="")
    else:
        save(plan, Path(args.output))
        print(f"{args.output}: {len(plan.entries)} decision(s)")
    return 0

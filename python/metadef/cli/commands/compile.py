"""`metadef compile`: compiles a model and prints what came of it."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from metadef.cli.console import progress_bar
from metadef.cli.devices import add_device
from metadef.cli.models import Model, add_model, load_model
from metadef.cli.usage import count

if TYPE_CHECKING:
    from metadef.frontend.compiled_model import CompiledModel

HELP = "compile; print stages, kernels, memory, fallbacks"
DESCRIPTION = "Compile a model and print stages with nodes and seconds, kernels, memory, fallbacks."


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_threads(parser)
    add_compile_options(parser)
    parser.add_argument(
        "--print-ir-after-all", action="store_true", help="print IR after each pass"
    )
    parser.add_argument("--ir-dir", metavar="DIR", help="put that IR in numbered files instead")
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add `--threads` of the commands that compile once."""
    parser.add_argument("--threads", metavar="N", type=count, help="threads (default: torch's)")


def add_compile_options(parser: argparse.ArgumentParser, *, plan: bool = True) -> None:
    """Add the other options of every command that compiles, `--plan` among them unless not so."""
    parser.add_argument(
        "--fallback",
        choices=["eager", "error"],
        default="eager",
        help="what to do with an op that nobody can lower: leave it to torch, or fail",
    )
    add_device(parser)
    if plan:
        parser.add_argument(
            "--plan", metavar="FILE", help="a plan, whose choices go before the compiler's own"
        )
    add_error_limit(parser)


def add_error_limit(parser: argparse.ArgumentParser) -> None:
    """Add `--error-limit`."""
    parser.add_argument(
        "--error-limit",
        metavar="ERROR",
        type=float,
        help="relative error of the outputs up to which weights may be stored in bf16 or i8 (none)",
    )


def compile_for(args: argparse.Namespace, model: Model) -> CompiledModel:
    """Compile the model with the options of the command line, behind a progress bar."""
    from metadef.api import compile

    with progress_bar(f"compiling {model.name}") as tell:
        return compile(
            model.module,
            model.args,
            model.kwargs,
            dynamic_shapes=model.dynamic_shapes,
            device=args.device,
            threads=args.threads,
            fallback=args.fallback,
            print_ir_after_all=getattr(args, "print_ir_after_all", False),
            ir_dir=getattr(args, "ir_dir", None),
            progress=tell,
            plan=args.plan,
            error_limit=args.error_limit,
        )


def run(args: argparse.Namespace) -> int:
    """Compile; print the report."""
    from metadef.frontend.report import as_dict

    report = compile_for(args, load_model(args.model)).report()
    print(json.dumps(as_dict(report), indent=2) if args.json else report)
    return 0

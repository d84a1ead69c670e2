"""`metadef`: compiles, runs, measures models, describes devices; one file in commands/ each."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import TextIO

from metadef import __version__
from metadef.cli.commands import (
    bench,
    check,
    compile,
    cost,
    device,
    explain,
    plan,
    profile,
    run,
    tune,
    worker,
)
from metadef.cli.usage import Parser, UsageError, add_commands
from metadef.diagnostics import MetadefError

_COMMANDS = {
    "compile": compile,
    "run": run,
    "check": check,
    "bench": bench,
    "explain": explain,
    "profile": profile,
    "device": device,
    "cost": cost,
    "plan": plan,
    "tune": tune,
    "worker": worker,
}


def make_parser() -> argparse.ArgumentParser:
    """Return the reader of the command line with a reader for each command below it."""
    parser = Parser(
        prog="metadef",
        description="Compile PyTorch models to native programs for this machine.",
        epilog="MODEL is a .pt2 file (torch.export.save) or package.module:factory, a function "
        "that returns (module, args) or (module, args, kwargs). "
        "Exit codes: 0 all is well, 1 the model or its numbers are at fault, 2 wrong usage.",
    )
    parser.add_argument("--version", action="version", version=f"metadef {__version__}")
    add_commands(parser, _COMMANDS)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code: 0, 1 for a model at fault, 2 for wrong usage."""
    try:
        args = make_parser().parse_args(argv)
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code: int = args.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        sys.stderr.close()  # the reader has gone, which is its right
        return 1
    except KeyboardInterrupt:
        return 130
    except (MetadefError, OSError) as error:
        text = "\n".join([str(error), *getattr(error, "__notes__", [])])
        hint = "; see metadef --help" if isinstance(error, UsageError) else ""
        print(f"metadef: error: {text}{hint}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as a line; the code that it comes from is not the reader's."""
    print(f"metadef: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())

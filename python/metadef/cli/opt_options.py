"""The options of `metadef-opt`, and the passes among them: `--canonicalize --pipeline=front`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from metadef.cli.usage import Parser, UsageError
from metadef.diagnostics import MetadefError
from metadef.pass_runner import Step
from metadef.pipeline import find_step, near_passes
from metadef.pipelines import passes_of

#: between the parts of a file that `--split-input-file` treats one by one
SPLIT_MARKER = "// -----"


def make_parser() -> argparse.ArgumentParser:
    """Return the reader of all options but the passes themselves (`--canonicalize`, ...)."""
    parser = Parser(
        prog="metadef-opt",
        usage="metadef-opt [FILE] [--PASS[=OPTIONS] ...] [options]",
        description="Run passes over MLIR text; --list names them, --explain PASS tells about one.",
        allow_abbrev=False,
        add_help=False,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=34, width=100),
    )
    add = parser.add_argument
    add("input", metavar="FILE", nargs="?", default="-", help="MLIR text or bytecode; - is stdin")
    add("-o", dest="output", metavar="FILE", default="-", help="where the result goes; - is stdout")
    add("--pass-pipeline", metavar="TEXT", help="builtin.module(a,func.func(b),c{max-ops=4})")
    add("--pipeline", metavar="NAME", help="a named pipeline: front or kernel")
    add("--load", metavar="FILE.py", action="append", default=[], help="add a user's passes, ops")
    add("--list", action="store_true", help="list passes and pipelines")
    add("--explain", metavar="PASS", help="say what a pass or pipeline does, with its options")
    add("--split-input-file", action="store_true", help=f"treat parts between {SPLIT_MARKER} alone")
    add("--verify-diagnostics", action="store_true", help="check expected-error {{..}} comments")
    add("--verify-each", nargs="?", const="true", default="true", choices=["true", "false"],
        help="verify after each pass (default true)")  # fmt: skip
    add("--check-stages", action="store_true", help="check the dialects after --pipeline's stages")
    add("--mlir-print-ir-before-all", action="store_true", help="print IR before each pass")
    add("--mlir-print-ir-after-all", action="store_true", help="print IR after each pass")
    add("--mlir-print-ir-before", metavar="A,B", default="", help="print IR before these passes")
    add("--mlir-print-ir-after", metavar="A,B", default="", help="print IR after these passes")
    add("--mlir-print-ir-tree-dir", metavar="DIR", help="put that IR in numbered files instead")
    add("--mlir-print-debuginfo", action="store_true", help="print locations")
    add("--mlir-print-op-generic", action="store_true", help="print ops in generic form")
    add("--mlir-timing", action="store_true", help="print the wall time of each pass")
    add("--mlir-generate-reproducer", metavar="FILE", help="leave IR and command of a failed pass")
    add("--run-reproducer", action="store_true", help="run the command that FILE holds")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops nobody defined")
    add("--help", action="store_true", help="show this and exit")
    return parser


@dataclass(frozen=True)
class Request:
    """A `--pass` or `--pipeline` of the command line, in order."""

    name: str
    options: str = ""
    is_pipeline: bool = False

    def steps(self, known_options: Sequence[str]) -> Sequence[Step]:
        if self.is_pipeline:
            return list(passes_of(self.name))
        try:
            return [find_step(self.name, self.options)]
        except MetadefError as error:
            if not str(error).startswith("unknown pass"):
                raise
            near = near_passes(self.name, "--", known_options)
            raise UsageError(f"unknown pass or option '--{self.name}'{near}") from None


def take_requests(
    argv: Sequence[str], parser: argparse.ArgumentParser
) -> tuple[list[str], list[Request]]:
    """Split the command line into what `parser` reads and the passes, which keep their order."""
    known = parser._option_string_actions
    rest: list[str] = []
    requests: list[Request] = []
    tokens = iter(argv)
    for token in tokens:
        if token.startswith("-") and not token.startswith(("--", "-o")) and len(token) > 1:
            token = "-" + token  # mlir-opt takes -cse for --cse
        key, equals, value = token.partition("=")
        if key == "--pipeline":
            requests.append(Request(value if equals else next(tokens, ""), is_pipeline=True))
        elif token == "--verify-each":
            rest.append("--verify-each=true")
        elif token.startswith("--") and key not in known:
            requests.append(Request(key[2:], value))
        else:
            rest.append(token)
    return rest, requests

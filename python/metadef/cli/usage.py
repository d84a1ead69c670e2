"""The reader of command lines: what is wrong with one is an error in a line and exit code 2."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import ModuleType
from typing import NoReturn

from metadef.diagnostics import MetadefError


class UsageError(MetadefError):
    """The command line asks for something that does not exist; exit code 2."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` where argparse would leave the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def add_commands(parser: argparse.ArgumentParser, modules: Mapping[str, ModuleType]) -> None:
    """Add a command for each module, which has `HELP` and `DESCRIPTION`.

    One with `COMMANDS`, modules by name, is a command of commands. Any other adds its arguments,
    MODEL among them if it takes one, in `add_options(parser)`, and does its work in `run(args)`,
    which returns the exit code.
    """
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, module in modules.items():
        command = commands.add_parser(name, help=module.HELP, description=module.DESCRIPTION)
        if hasattr(module, "COMMANDS"):
            add_commands(command, module.COMMANDS)
        else:
            module.add_options(command)
            command.set_defaults(run=module.run)


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return int(text)


def counts(text: str) -> list[int]:
    """Read numbers as in `1,2`."""
    return [count(part.strip()) for part in text.split(",")]

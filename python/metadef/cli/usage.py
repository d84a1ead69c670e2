"""The reader of command lines: what is wrong with one is an error in a line and exit code 2."""

from __future__ import annotations

import argparse
from typing import NoReturn

from metadef.diagnostics import MetadefError


class UsageError(MetadefError):
    """The command line asks for something that does not exist; exit code 2."""


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` where argparse would leave the process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def count(text: str) -> int:
    """Read a whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, got '{text}'")
    return int(text)


def counts(text: str) -> list[int]:
    """Read numbers as in `1,2`."""
    return [count(part.strip()) for part in text.split(",")]

"""Refuses MLIR text whose nesting MLIR's own parser, which recurses, does not survive."""

from __future__ import annotations

import re

from metadef.diagnostics import PipelineError

#: MLIR's parser needs a few kilobytes of stack a level: 8 MB end between 10 000 and 20 000 levels
MOST_LEVELS = 2000

_QUIET = re.compile(rb'"(?:[^"\\\n]|\\.)*"|//[^\n]*|->|[<>]=|=[<>]')
_BRACKETS = re.compile(rb"[][(){}<>]")
_OPENING = b"([{<"
#: affine expressions recurse without brackets: signs in a row, and chains of operators
_CHAIN = re.compile(rb"(?:-\s*){%d}|(?:[\w%%]+\s*[-+*]\s*){%d}" % (MOST_LEVELS, MOST_LEVELS))


def check_nesting(text: bytes) -> None:
    """Check that no brackets nest, and no affine expression grows, more than MOST_LEVELS deep.

    Raises:
        PipelineError: they do; says in which line.
    """
    if sum(text.count(b) for b in (b"(", b"[", b"{", b"<", b"-", b"+", b"*")) <= MOST_LEVELS:
        return
    chain = _CHAIN.search(text)
    if chain:
        raise _too_deep(text, chain.start())
    quiet = _QUIET.sub(lambda match: b" " * len(match[0]), text)
    depth = 0
    for bracket in _BRACKETS.finditer(quiet):
        depth += 1 if bracket[0] in _OPENING else -1
        if depth > MOST_LEVELS:
            raise _too_deep(text, bracket.start())


def _too_deep(text: bytes, at: int) -> PipelineError:
    line = text.count(b"\n", 0, at) + 1
    return PipelineError(f"line {line}: expected at most {MOST_LEVELS} levels of nesting, got more")

"""`--verify-diagnostics`: compares what MLIR and the passes report with `expected-*` comments.

    // expected-error @+1 {{contracted dims must agree}}
    %0 = "metadef.contraction"(%a, %b) ...

Kinds are error, warning, remark and note; the line is `@+N`, `@-N`, `@above`, `@below`, or
`@unknown` for a diagnostic without a place in the file. `expected-error-re` takes regular
expressions in inner braces: `{{got K={{[0-9]+}}}}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from metadef import ir
from metadef.diagnostics import PipelineError

_EXPECTED = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)"
    r"(?:(?P<re>-re)\s*(?:@(?P<where_re>[+-]\d+|above|below|unknown))?\s*\{\{(?P<pattern>.*)\}\}"
    r"|\s*(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\})"
)


@dataclass(frozen=True)
class Diagnostic:
    """One report: `line` is None when its location is not a place in a file."""

    kind: str
    line: int | None
    text: str


@dataclass(frozen=True)
class Expected:
    """One `expected-*` comment, on line `at`, that awaits a diagnostic on `line`."""

    kind: str
    line: int | None
    pattern: re.Pattern[str]
    text: str
    at: int

    def accepts(self, diagnostic: Diagnostic) -> bool:
        return (
            self.kind == diagnostic.kind
            and self.line == diagnostic.line
            and self.pattern.search(diagnostic.text) is not None
        )


@dataclass
class Collector:
    """Gathers the diagnostics of a context; its `handle` is an MLIR diagnostic handler."""

    found: list[Diagnostic] = field(default_factory=list)

    def handle(self, diagnostic: ir.Diagnostic) -> bool:
        """Keep `diagnostic` and its notes and tell MLIR that it is dealt with."""
        self._keep(diagnostic)
        for note in diagnostic.notes:
            self._keep(note)
        return True

    def _keep(self, diagnostic: ir.Diagnostic) -> None:
        kind = diagnostic.severity.name.lower()
        place = re.search(r'":(\d+):\d+', str(diagnostic.location))
        line = int(place[1]) if place and int(place[1]) > 0 else None
        self.found.append(Diagnostic(kind, line, diagnostic.message))

    def add_exception(self, error: Exception) -> None:
        """Keep an error that Python raised; one that MLIR reported has been handled already.

        The line is the one that the message names last: `...; from model.mlir:41`.
        """
        if isinstance(error, ir.MLIRError) or isinstance(error.__cause__, ir.MLIRError):
            return
        place = re.search(r'from [^\n]*?"?:(\d+)(?::\d+\)?)?\s*$', str(error).splitlines()[0])
        cause = error.__cause__ if isinstance(error, PipelineError) and error.__cause__ else error
        self.found.append(Diagnostic("error", int(place[1]) if place else None, str(cause)))


def read_expected(source: str) -> list[Expected]:
    """Return what the `expected-*` comments of `source` await; lines count from 1."""
    lines = source.splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        for match in _EXPECTED.finditer(line):
            text = match["pattern"] if match["re"] else match["text"]
            pattern = _inner_patterns(text) if match["re"] else re.escape(text)
            where = _line_of(match["where"] or match["where_re"], number, lines)
            found.append(Expected(match["kind"], where, re.compile(pattern), text, number))
    return found


def mismatches(expected: list[Expected], found: list[Diagnostic], source_name: str) -> list[str]:
    """Return one line for each expectation unmet and each error, warning or remark not expected.

    A note that nobody expects is fine, as it is for mlir-opt.
    """
    problems = []
    rest = list(found)
    for e in expected:
        match = next((d for d in rest if e.accepts(d)), None)
        if match is not None:
            rest.remove(match)
            continue
        line = "unknown place" if e.line is None else f"line {e.line}"
        problems.append(
            f"{source_name}:{e.at}: error: expected {e.kind} '{e.text}' on {line} did not come"
        )
    for d in rest:
        if d.kind != "note":
            place = source_name if d.line is None else f"{source_name}:{d.line}"
            problems.append(f"{place}: error: unexpected {d.kind}: {d.text}")
    return problems


def _line_of(where: str | None, number: int, lines: list[str]) -> int | None:
    if where is None:
        return number
    if where == "unknown":
        return None
    if where in ("above", "below"):
        step = 1 if where == "below" else -1
        line = number + step
        while 1 <= line <= len(lines) and _EXPECTED.search(lines[line - 1]):
            line += step
        return line
    return number + int(where)


def _inner_patterns(text: str) -> str:
    """Return the regular expression for literal text with `{{regex}}` inside."""
    parts = re.split(r"\{\{(.*?)\}\}", text)
    return "".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts))

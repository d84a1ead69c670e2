"""The table of verdicts: a JSON list with one line per case, sorted, so that diffs read well."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from .cases import Case
from .verdict import KINDS, Verdict

TABLE = Path(__file__).parent / "table.json"

Table = Mapping[Case, Verdict]


def read(path: Path = TABLE) -> dict[Case, Verdict]:
    """Return the table in a file; without the file, an empty one."""
    if not path.exists():
        return {}
    return {
        Case(row["op"], row["variant"], row["dtype"]): Verdict(row["verdict"], row["why"])
        for row in json.loads(path.read_text())
    }


def write(table: Table, path: Path = TABLE) -> None:
    """Write a table to a file."""
    rows = [json.dumps(_row(case, table[case])) for case in sorted(table)]
    path.write_text("[\n" + ",\n".join(rows) + "\n]\n")


def _row(case: Case, verdict: Verdict) -> dict[str, str]:
    names = {"op": case.op, "variant": case.variant, "dtype": case.dtype}
    return {**names, "verdict": verdict.kind, "why": verdict.why}


def summary(table: Table) -> list[str]:
    """Return a line per dtype: how many ops of each verdict, and the share that is ours."""
    lines = []
    for dtype in sorted({case.dtype for case in table}):
        counts = Counter(v.kind for case, v in table.items() if case.dtype == dtype)
        total = sum(counts.values())
        ours = counts["native"] + counts["linalg"]
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
        lines.append(f"{dtype}: {kinds}; native or linalg {ours} of {total}: {ours / total:.1%}")
    return lines


def regressions(now: Table, before: Table) -> list[str]:
    """Return a line for each case whose verdict got worse, or that the table does not have."""
    lines = []
    for case in sorted(now):
        verdict, old = now[case], before.get(case)
        if old is None:
            lines.append(f"{case}: not in the table; it is {verdict}")
        elif KINDS.index(verdict.kind) > KINDS.index(old.kind):
            lines.append(f"{case}: was {old.kind}, is {verdict}")
    return lines

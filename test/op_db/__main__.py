"""`tools/op_db`: judge the ops of torch's operator database; write the table, or check it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from .cases import Case, all_cases
from .quick import QUICK_SAMPLES, quick_cases
from .runner import run
from .table import TABLE, read, regressions, summary, write
from .verdict import KINDS, Verdict


def main() -> int:
    """Judge the cases that the arguments pick; return the exit code."""
    options = _parser().parse_args()
    before = read(options.table)
    if options.quick:
        now = dict(_shown(quick_cases(), QUICK_SAMPLES, options.jobs))
        worse = regressions(now, before)
        print("\n".join(worse or ["no verdict got worse"]))
        return 1 if worse else 0
    every = all_cases()
    cases = [case for case in every if _picks(options, case, before)]
    journal = options.table.with_suffix(".partial")
    now = _resumed(journal) if options.resume else {}
    with journal.open("a" if options.resume else "w") as log:
        missing = [case for case in cases if case not in now]
        for case, verdict in _shown(missing, options.samples, options.jobs):
            now[case] = verdict
            print(json.dumps([vars(case), vars(verdict)]), file=log, flush=True)
    known = {**before, **now}
    table = {case: known[case] for case in every if case in known}
    write(table, options.table)
    journal.unlink()
    print("\n".join(summary(table)))
    return 0


def _shown(cases: list[Case], samples: int, jobs: int) -> Iterable[tuple[Case, Verdict]]:
    """Judge cases and print each verdict as it comes."""
    for count, (case, verdict) in enumerate(run(cases, samples, jobs), 1):
        print(f"{count}/{len(cases)} {case}: {verdict}", flush=True)
        yield case, verdict


def _picks(options: argparse.Namespace, case: Case, before: dict[Case, Verdict]) -> bool:
    if options.dtype and case.dtype != options.dtype:
        return False
    if options.verdict and (case not in before or before[case].kind not in options.verdict):
        return False
    return not options.ops or any(fnmatch(case.op, pattern) for pattern in options.ops)


def _resumed(journal: Path) -> dict[Case, Verdict]:
    """Return the verdicts that an interrupted run has left."""
    if not journal.exists():
        return {}
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    return {Case(**case): Verdict(**verdict) for case, verdict in rows}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/op_db", description=__doc__)
    parser.add_argument("ops", nargs="*", metavar="OP", help="names or patterns; all without any")
    parser.add_argument("--quick", action="store_true", help="a fixed subset; fail if worse")
    parser.add_argument("--dtype", choices=("float32", "int64"), help="only samples of this dtype")
    parser.add_argument("--verdict", action="append", choices=KINDS, help="only cases that had it")
    parser.add_argument("--samples", type=int, default=5, help="samples a case, at most (5)")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes (2)")
    parser.add_argument("--resume", action="store_true", help="go on where the last run stopped")
    parser.add_argument("--table", type=Path, default=TABLE, help="the table's file")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())

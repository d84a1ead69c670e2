"""Ops of torch's operator database: none of a quick subset fares worse than the table says."""

from __future__ import annotations

from op_db.quick import QUICK_SAMPLES, quick_cases
from op_db.runner import run
from op_db.table import read, regressions


def test_no_verdict_got_worse() -> None:
    verdicts = dict(run(quick_cases(), QUICK_SAMPLES))
    assert len(verdicts) == len(quick_cases())
    assert not regressions(verdicts, read())


def test_the_table_has_no_wrong_number_and_no_crash() -> None:
    table = read()
    bad = {"wrong", "crash", "timeout", "error"}
    assert not [str(case) for case, verdict in table.items() if verdict.kind in bad]


def test_most_ops_with_float32_samples_are_ours() -> None:
    kinds = [verdict.kind for case, verdict in read().items() if case.dtype == "float32"]
    assert sum(kind in ("native", "linalg") for kind in kinds) >= 0.7 * len(kinds)

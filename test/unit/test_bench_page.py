"""What bench/ makes of its records: ratios of rounds, parts of limits, the page with its plots."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what imports a module of bench/, which is no package."""
    monkeypatch.syspath_prepend(str(BENCH))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(BENCH) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def record(program: str, ms: list[float], threads: int = 1, **more: Any) -> dict[str, Any]:
    found = {
        **{"date": "2026-01-02T03:04:05+00:00", "commit": "abc", "machine": "a machine"},
        **{"torch": "2", "command": "bench/run.py", "row": "product", "beside_threads": threads},
        **{"limit": "fma", "traffic": 0, "program": program, "threads": threads},
        **{"rounds": list(range(len(ms))), "ms": ms, "flops": 1_000_000, "compile_seconds": 1.5},
        **{"warm_compile_seconds": 0.5, "run_peak_mib": 300.0, "others": [0.1] * len(ms)},
    }
    return found | more


RECORDS = [
    record("eager", [4.0, 8.0, 4.0]),
    record("onnxruntime", [3.0, 6.0, 3.0]),
    record("iree", [], failed="no such op"),
    record("metadef", [2.0, 4.0, 2.0]),
    record("limits", [], rounds=[0, 1, 2], fma=[1e9, 0.5e9, 1e9]),
]


def test_ratios_are_of_the_rounds(bench: Any) -> None:
    (found,) = bench("summary").summaries(RECORDS)
    assert found.over == {"eager": 2.0, "onnxruntime": 1.5}
    assert (found.best_peer, found.over_best) == ("onnxruntime", 1.5)
    assert found.of_limit == 0.5
    assert found.over_one_thread is None


def test_metadef_alone_is_what_threads_are_compared_with(bench: Any) -> None:
    records = [record("metadef", [2.0], 2), record("metadef", [3.0], 1, beside_threads=2)]
    (found,) = bench("summary").summaries(records)
    assert found.over_one_thread == 1.5
    assert found.best_peer is None


def test_the_last_run_of_a_row_counts(bench: Any) -> None:
    later = [r | {"date": "2026-02-02T03:04:05+00:00", "ms": [1.0, 1.0, 1.0]} for r in RECORDS[:1]]
    (found,) = bench("summary").summaries([*RECORDS, *later])
    assert found.eager_ms == 1 and found.ms is None


def test_the_page_has_tables_and_plots(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = {"kind": "contraction", "shape": "thin 2x3x4", "ratio": 1.25, "seed": 0}
    for name, records in (("run", RECORDS), ("shapes", [RECORDS[0] | shape])):
        lines = "".join(json.dumps(r) + "\n" for r in records)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    argv = ["page.py", "--results", str(tmp_path), "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", argv)
    assert bench("page").main() == 0
    page = (tmp_path / "performance.md").read_text()
    assert "| product | 2.000 | 4.000 | 2.00 | 1.50 | 1.50 (onnxruntime) | 50% of fma |" in page
    assert "geometric mean 1.50, least 1.50, 1 rows" in page
    assert "| contractions | 1 | 1 | 1.25 | 1.25 | 0 |" in page
    plots = sorted((tmp_path / "performance").glob("*.svg"))
    assert [p.name for p in plots] == ["best-0.svg", "peers-0-1.svg", "shapes-0.svg"]
    for plot in plots:
        assert ElementTree.fromstring(plot.read_text()).tag.endswith("svg")
        assert f"performance/{plot.name}" in page


def test_shapes_are_those_of_the_seed(bench: Any) -> None:
    shapes = bench("shapes")
    for draw in (shapes.contraction, shapes.convolution):
        first, again = (shapes.drawn(draw, 40, seed=0) for _ in range(2))
        assert [s.name for s in first] == [s.name for s in again]
        assert len({s.name for s in first}) == 40
        assert [s.name for s in first] != [s.name for s in shapes.drawn(draw, 40, seed=1)]


def test_rows_are_named_once(bench: Any) -> None:
    workloads = bench("workloads")
    names = workloads.names_of("table,models,zoo,softmax")
    assert len(names) == len(set(names)) == len(workloads.ROWS) + len(workloads.names_of("zoo"))
    model = workloads.softmax()
    assert model.args[0].shape == (4096, 1024)

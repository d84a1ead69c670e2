"""The performance table: what it keeps, for whom it answers, and what it refuses."""

from __future__ import annotations

import csv
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from metadef.cost.table.export import to_csv, to_parquet
from metadef.cost.table.measurement import Measurement
from metadef.cost.table.table import SCHEMA_VERSION, Table
from metadef.diagnostics import TableError

ONE = Measurement(
    *("structure", "family", "contraction", "packed", "f32", True, 1, 1, "device", "compiler"),
    sizes=(64, 128),
    symbols={"B": 2},
    choice={"tiles": [64, 16], "rows": 6},
    moves={"rows": 6},
    features={"flops": 1e6},
    **{"ns": 110.0, "p90_ns": 120.0, "least_ns": 100.0, "spread": 0.05, "rounds": 20},
    **{"date": "2026-01-01T00:00:00+00:00", "host": "here", "text": "key"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table.sqlite"


def test_gives_back_what_was_recorded(path: Path) -> None:
    failed = replace(ONE, structure="other", failed="it crashed", ns=0.0, least_ns=0.0)
    with Table(path) as table:
        table.record([ONE, failed], {"key": "func.func @kernel"})
    with Table(path) as table:
        assert table.find() == [ONE, failed]
        assert table.text("key") == "func.func @kernel" and table.text("none") is None
        assert ONE.usable and not failed.usable and not replace(ONE, flagged=True).usable


def test_answers_for_nobody_else(path: Path) -> None:
    with Table(path) as table:
        table.record([ONE])
        assert table.find(device="device", compiler="compiler", choice=ONE.choice) == [ONE]
        assert table.find(device="device", compiler="later") == []
        assert table.find(device="other", compiler="compiler") == []


def test_the_same_measurement_is_kept_once(path: Path) -> None:
    with Table(path) as table:
        table.record([ONE])
        table.record([ONE, replace(ONE, date="2026-01-02T00:00:00+00:00")])
        assert len(table) == 2


def test_merges_what_another_machine_measured(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    with Table(other) as table:
        table.record([ONE, replace(ONE, host="there")], {"key": "text"})
    with Table(path) as table:
        table.record([ONE])
        assert table.merge(other) == 1 and table.merge(other) == 0
        assert table.text("key") == "text"
        with pytest.raises(TableError, match="expected a file, got none"):
            table.merge(tmp_path / "none.sqlite")


def test_exports_a_column_for_each_field(path: Path) -> None:
    to_csv([ONE], path.with_suffix(".csv"))
    (row,) = csv.DictReader(path.with_suffix(".csv").open())
    assert row["choice"] == '{"rows":6,"tiles":[64,16]}' and row["least_ns"] == "100.0"
    parquet = pytest.importorskip("pyarrow.parquet")
    to_parquet([ONE], path.with_suffix(".parquet"))
    assert parquet.read_table(path.with_suffix(".parquet")).to_pylist()[0]["threads"] == 1


def test_refuses_another_version(path: Path) -> None:
    Table(path).close()
    with sqlite3.connect(path) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(TableError, match="expected schema version 1, got 2; move it away"):
        Table(path)


def test_refuses_another_programs_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (x)")
    with pytest.raises(TableError, match="another program's database"):
        Table(path)


@pytest.mark.parametrize("damage", ["no database", "truncated", "overwritten", "a row changed"])
def test_refuses_a_damaged_file(path: Path, damage: str) -> None:
    with Table(path) as table:
        table.record([replace(ONE, structure=f"structure {n}") for n in range(200)])
    content = path.read_bytes()
    path.write_bytes(
        {
            "no database": b"not a database at all" * 100,
            "truncated": content[: len(content) // 2],
            "overwritten": content[:4096] + b"\xff" * 8192 + content[12288:],
            "a row changed": content.replace(b"structure 7", b"strukture 7"),
        }[damage]
    )
    with pytest.raises(TableError, match=r"damaged: .*Move it away and calibrate again"):  # noqa: SIM117
        with Table(path) as table:
            table.find()


def test_a_folder_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="must be a file that can be written"):
        Table(tmp_path)


def test_processes_write_at_once(path: Path) -> None:
    program = (
        "import sys; from dataclasses import replace; from pathlib import Path\n"
        "from test_table import ONE, Table\n"
        "with Table(Path(sys.argv[1])) as table:\n"
        "    for n in range(50): table.record([replace(ONE, host=f'{sys.argv[2]} {n}')])\n"
    )
    command = [sys.executable, "-c", program, str(path)]
    here = Path(__file__).parent
    writers = [subprocess.Popen([*command, str(n)], cwd=here) for n in range(3)]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    with Table(path) as table:
        assert len(table) == 150

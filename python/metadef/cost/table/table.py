"""The table of measured kernels, as an SQLite file that several processes may use at once.

with Table(path) as table:
    table.record([measurement], {measurement.text: text})
    table.find(device=spec.fingerprint(), compiler=code_version())
"""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from metadef.diagnostics import TableError

from .measurement import COLUMNS, DATA, Measurement, canonical, from_row, to_row

#: of the file's form; a file of another one is refused
SCHEMA_VERSION = 1
#: "MDPT" in the header, so that no other program's file is taken for a table
_APPLICATION = 0x4D445054
#: how long another process may hold the file
_PATIENCE_SECONDS = 30.0
_NUMBERS = frozenset("ns p90_ns least_ns spread".split())
_WHOLE = frozenset("fused threads copies rounds flagged".split())
#: two rows that agree in these are one measurement
_IDENTITY = "structure, symbols, choice, threads, copies, device, compiler, date, host"

_MEASUREMENTS = ", ".join(
    f"{name} {'REAL' if name in _NUMBERS else 'INTEGER' if name in _WHOLE else 'TEXT'}"
    + ("" if name == "failed" else " NOT NULL")
    for name in COLUMNS
)
_SCHEMA = f"""
CREATE TABLE measurements ({_MEASUREMENTS}, crc INTEGER NOT NULL, UNIQUE ({_IDENTITY}));
CREATE INDEX answers ON measurements (device, compiler, threads);
CREATE TABLE texts (key TEXT PRIMARY KEY, text BLOB NOT NULL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_INSERT = (
    f"INSERT OR IGNORE INTO measurements ({', '.join(COLUMNS)}, crc) "
    f"VALUES ({', '.join('?' * (len(COLUMNS) + 1))})"
)


class Table:
    """An open table; the file is made where there is none.

    Raises:
        TableError: the file is damaged, no table, or one of another version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._telling():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path, timeout=_PATIENCE_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._database.close()
                raise

    def __enter__(self) -> Table:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def record(
        self, measurements: Iterable[Measurement], texts: Mapping[str, str] | None = None
    ) -> None:
        """Keep measurements, all or none; `texts` has kernels' texts by the keys that they name."""
        rows = [to_row(m) for m in measurements]
        packed = [(key, zlib.compress(text.encode())) for key, text in (texts or {}).items()]
        with self._transaction():
            self._database.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", packed)
            self._database.executemany(_INSERT, [(*row, _checksum(row)) for row in rows])

    def find(self, **wanted: Any) -> list[Measurement]:
        """Return the measurements whose columns are as `wanted`, oldest first.

        Raises:
            TableError: a row is not what was written.
        """
        unknown = set(wanted) - set(COLUMNS)
        assert not unknown, f"the table has no columns {unknown}"
        where = " AND ".join(f"{name} = ?" for name in wanted) or "1"
        values = [canonical(v) if name in DATA else v for name, v in wanted.items()]
        query = (
            f"SELECT {', '.join(COLUMNS)}, crc FROM measurements WHERE {where} ORDER BY date, rowid"
        )
        with self._telling():
            return [self._checked(*row) for row in self._database.execute(query, values)]

    def text(self, key: str) -> str | None:
        """Return a kernel's text, None where the table has none of that key."""
        with self._telling():
            row = self._database.execute("SELECT text FROM texts WHERE key = ?", [key]).fetchone()
            return None if row is None else zlib.decompress(row[0]).decode()

    def merge(self, other: Path) -> int:
        """Take over what another table has and this one has not; return how many measurements.

        Raises:
            TableError: there is no such table, or it is damaged or of another version.
        """
        if not other.is_file():
            raise TableError(f"performance table '{other}': expected a file, got none")
        with Table(other) as source:
            found = source.find()
            texts = {m.text: source.text(m.text) for m in found if m.text}
        before = len(self)
        self.record(found, {key: text for key, text in texts.items() if text is not None})
        return len(self) - before

    def __len__(self) -> int:
        with self._telling():
            (count,) = self._database.execute("SELECT count(*) FROM measurements").fetchone()
        return int(count)

    def _prepare(self) -> None:
        """Check that the file is whole and ours, or fill a new one."""
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute("PRAGMA synchronous = NORMAL")
        with self._transaction():
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            (application,) = self._database.execute("PRAGMA application_id").fetchone()
            (objects,) = self._database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if not objects and not version:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    self._database.execute(statement)
                return
        if application != _APPLICATION:
            raise TableError(
                f"performance table '{self.path}': expected a table of metadef, got another "
                "program's database; name another file"
            )
        if version != SCHEMA_VERSION:
            raise TableError(
                f"performance table '{self.path}': expected schema version {SCHEMA_VERSION}, got "
                f"{version}; move it away, and calibrate again with this metadef"
            )
        # Milliseconds even for large tables, so not only after a crash.
        (found,) = self._database.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise self._damaged(found.splitlines()[-1])

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._telling():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Say what is wrong with the file in our words."""
        try:
            yield
        except sqlite3.OperationalError as error:
            raise TableError(
                f"performance table '{self.path}': {error}; it must be a file that can be written, "
                "in a folder that can, and that no process holds for long"
            ) from error
        except (sqlite3.DatabaseError, zlib.error, UnicodeDecodeError) as error:
            raise self._damaged(str(error)) from error
        except OSError as error:
            raise TableError(f"performance table '{self.path}': {error}") from error

    def _checked(self, *row: Any) -> Measurement:
        *columns, crc = row
        try:
            if _checksum(tuple(columns)) == crc:
                return from_row(tuple(columns))
        except (ValueError, TypeError) as error:
            raise self._damaged(f"a row cannot be read: {error}") from error
        raise self._damaged("a row is not what was written")

    def _damaged(self, why: str) -> TableError:
        return TableError(
            f"performance table '{self.path}': damaged: {why}; nothing was read. Move it away and "
            f"calibrate again, or save what is whole: sqlite3 '{self.path}' .recover | sqlite3 "
            "new.sqlite"
        )


def _checksum(row: tuple[Any, ...]) -> int:
    return zlib.crc32(canonical(row).encode())

"""The compile cache: whole entries or none, bounded, shared, and plain when it cannot work."""

from __future__ import annotations

import multiprocessing
import os
import warnings
from pathlib import Path

import pytest

from metadef.diagnostics import CacheError
from metadef.runtime.cache import Cache, default_cache

KEY = "ab" * 32


def entry_files(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.entry"))


def test_returns_what_was_put(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "deep" / "cache")
    assert cache.get(KEY) is None
    cache.put(KEY, b"payload")
    assert cache.get(KEY) == b"payload"
    assert Cache(cache.directory).get(KEY) == b"payload"


def test_keeps_an_empty_payload(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"")
    assert cache.get(KEY) == b""


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty"])
def test_removes_a_damaged_entry(tmp_path: Path, damage: str) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"payload")
    (file,) = entry_files(tmp_path)
    content = file.read_bytes()
    file.write_bytes({"truncate": content[:-1], "flip": content[:-1] + b"X", "empty": b""}[damage])
    assert cache.get(KEY) is None
    assert not file.exists()
    cache.put(KEY, b"payload")
    assert cache.get(KEY) == b"payload"


def test_drops_the_entries_used_longest_ago(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    keys = [f"{i:02d}" * 32 for i in range(4)]
    for key in keys:
        cache.put(key, bytes(1000))
    for age, file in enumerate(entry_files(tmp_path)):
        os.utime(file, (1000 + age, 1000 + age))
    cache.limit_bytes = 3500
    assert cache.get(keys[0]) is not None  # now the youngest
    cache.trim()
    assert [cache.get(k) is not None for k in keys] == [True, False, True, True]
    assert cache.total_bytes() <= 3500


def test_removes_abandoned_temporary_files_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, limit_bytes=1500)
    cache.put(KEY, bytes(1000))
    abandoned = tmp_path / "ab" / "left.tmp"
    abandoned.write_bytes(bytes(1000))
    os.utime(abandoned, (1000, 1000))
    cache.trim()
    assert not abandoned.exists()
    assert cache.get(KEY) is not None


def test_leaves_no_temporary_files(tmp_path: Path) -> None:
    Cache(tmp_path).put(KEY, b"payload")
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == entry_files(tmp_path)


def test_clear_removes_every_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.put(KEY, b"payload")
    cache.clear()
    assert cache.get(KEY) is None and cache.total_bytes() == 0


def test_warns_once_and_goes_on_where_it_cannot_write(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = Cache(tmp_path / "file")
    with pytest.warns(RuntimeWarning, match="cannot write.*METADEF_CACHE_DIR"):
        cache.put(KEY, b"payload")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put(KEY, b"payload")
        assert cache.get(KEY) is None


def test_refuses_a_named_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CacheError, match="file': cannot write an entry"):
        Cache(tmp_path / "file", explicit=True).put(KEY, b"payload")


def test_reports_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(RuntimeWarning, match="No space left on device"):
        Cache(tmp_path).put(KEY, b"payload")
    assert [f for f in tmp_path.rglob("*") if f.is_file()] == []


def test_default_directory_follows_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    assert (default_cache().directory, default_cache().explicit) == (tmp_path, True)
    monkeypatch.delenv("METADEF_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert (default_cache().directory, default_cache().explicit) == (tmp_path / "metadef", False)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert default_cache().directory == Path.home() / ".cache" / "metadef"


def write_repeatedly(directory: Path, mark: bytes) -> None:
    cache = Cache(directory, limit_bytes=1 << 16)
    for _ in range(50):
        cache.put(KEY, mark * 10000)
        assert cache.get(KEY) in (None, b"a" * 10000, b"b" * 10000)


def test_processes_share_a_directory(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=write_repeatedly, args=(tmp_path, mark)) for mark in (b"a", b"b")
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    assert Cache(tmp_path).get(KEY) in (b"a" * 10000, b"b" * 10000)

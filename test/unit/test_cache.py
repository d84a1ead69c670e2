"""The compile cache: whole entries or none, bounded, shared, and plain when it cannot work."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
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


#: puts under the key given, and says so when it has got half way and waits there
KILLED_WRITER = """
import os, sys, time
from pathlib import Path
from metadef.runtime import cache

def wait(*_):
    print("ready", flush=True)
    time.sleep(600)

class Half:
    def __init__(self, handle, mode):
        self.file = open(handle, mode)
    def __enter__(self):
        return self
    def __exit__(self, *_):
        self.file.close()
    def write(self, content):
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        wait()

directory, key, where = sys.argv[1:]
if where == "writing":
    os.fdopen = Half
else:
    os.replace = wait
cache.Cache(Path(directory)).put(key, bytes(4000))
"""


@pytest.mark.parametrize("where", ["writing", "renaming"])
def test_a_writer_that_is_killed_leaves_a_cache_that_works(tmp_path: Path, where: str) -> None:
    cache = Cache(tmp_path, limit_bytes=6000)
    cache.put(KEY, b"before")
    command = [sys.executable, "-c", KILLED_WRITER, str(tmp_path), KEY, where]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()
    (left,) = tmp_path.rglob("*.tmp")
    assert cache.get(KEY) == b"before"
    cache.put(KEY, b"after")
    assert cache.get(KEY) == b"after"

    assert cache.total_bytes() > left.stat().st_size  # it may be one that is being written
    other = "cd" * 32
    cache.put(other, bytes(5000))
    cache.trim()
    assert left.exists() and cache.total_bytes() <= cache.limit_bytes

    os.utime(left, (1000, 1000))
    cache.put(other, bytes(5000))
    cache.trim()
    assert not left.exists() and cache.get(other) is not None

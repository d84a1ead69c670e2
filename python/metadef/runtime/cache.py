"""The compile cache on disk: bytes under a key, shared by every process of the user.

An entry is one file, written beside its place and renamed into it, so that a reader sees all of it
or none. Its header holds the hash of what follows: a damaged entry is removed and reads as absent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from metadef.diagnostics import CacheError

_MAGIC = b"metadef cache 1\n"
_SUFFIX = ".entry"
_TEMPORARY = ".tmp"
#: an abandoned temporary file is older than this many seconds
_ABANDONED_SECONDS = 3600.0
#: the directory's size is looked at once per this many bytes written by one process
_TRIM_EVERY_BYTES = 16 << 20


@dataclass
class Cache:
    """A size-bounded store of bytes; the entries used longest ago go first.

    An `explicit` directory, one that a person named, must work (`CacheError`); the default one may
    fail with one warning, and then nothing is kept. `limit_bytes` bounds the files' total.
    """

    directory: Path
    limit_bytes: int = 2 << 30
    explicit: bool = False
    _usable: bool = field(default=True, init=False)
    _written: int = field(default=_TRIM_EVERY_BYTES, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def get(self, key: str) -> bytes | None:
        """Return the entry under `key`, or None when there is none that is whole."""
        if not self._usable:
            return None
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._fail("read", error)
            return None
        payload = _payload(content)
        with contextlib.suppress(OSError):
            if payload is None:
                path.unlink()
            else:
                os.utime(path)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep `payload` under `key`, replacing what is there."""
        if not self._usable:
            return
        path = self._path(key)
        content = _MAGIC + hashlib.sha256(payload).digest() + payload
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, content)
        except OSError as error:
            self._fail("write", error)
            return
        with self._lock:
            self._written += len(content)
            due = self._written >= min(_TRIM_EVERY_BYTES, max(self.limit_bytes // 8, 1))
            if due:
                self._written = 0
        if due:
            self.trim()

    def trim(self) -> None:
        """Remove the entries used longest ago until the total is at most `limit_bytes`.

        What a process is writing counts, and stays; what it left when it was killed goes first.
        """
        entries = sorted(_entries(self.directory))
        total = self.total_bytes()
        for _, size, path in entries:
            if total <= self.limit_bytes:
                return
            with contextlib.suppress(OSError):  # another process was first
                path.unlink()
            total -= size

    def clear(self) -> None:
        """Remove every entry."""
        for _, _, path in _entries(self.directory):
            with contextlib.suppress(OSError):
                path.unlink()

    def total_bytes(self) -> int:
        """Return the bytes that the cache takes on disk."""
        return sum(status.st_size for _, status in _files(self.directory))

    def _path(self, key: str) -> Path:
        assert key.isalnum() and len(key) > 2, f"cache key '{key}' is not a hash"
        return self.directory / key[:2] / (key + _SUFFIX)

    def _fail(self, what: str, error: OSError) -> None:
        """Go on without the cache after one warning, or raise for an explicit directory."""
        reason = error.strerror or str(error)
        message = f"compile cache '{self.directory}': cannot {what} an entry: {reason}"
        advice = "set METADEF_CACHE_DIR to a directory that can be written"
        if self.explicit:
            raise CacheError(f"{message}; {advice}") from error
        with self._lock:
            first, self._usable = self._usable, False
        if first:
            warnings.warn(
                f"{message}; compiled kernels are not kept; {advice}", RuntimeWarning, stacklevel=4
            )


def default_cache() -> Cache:
    """Return the user's cache: METADEF_CACHE_DIR, else `metadef` under the XDG cache directory.

    An empty METADEF_CACHE_DIR is as good as none.
    """
    named = os.environ.get("METADEF_CACHE_DIR")
    if named:
        return Cache(Path(named), explicit=True)
    base = os.environ.get("XDG_CACHE_HOME")
    if base and Path(base).is_absolute():  # the XDG rule: a relative path is ignored
        return Cache(Path(base) / "metadef")
    try:
        return Cache(Path.home() / ".cache" / "metadef")
    except RuntimeError:  # no home directory; a fixed name in a shared one is open to others
        return Cache(Path(tempfile.mkdtemp(prefix="metadef-")))


def _payload(content: bytes) -> bytes | None:
    """Return what an entry holds, or None where its bytes are not those that were written."""
    start = len(_MAGIC) + hashlib.sha256().digest_size
    payload = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(payload).digest():
        return None
    return payload


def _write_whole(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.stem[:16], suffix=_TEMPORARY)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def _entries(directory: Path) -> Iterator[tuple[float, int, Path]]:
    """Yield time of last use, bytes and path of each entry, and of temporaries left by a crash."""
    for path, status in _files(directory):
        if path.suffix == _SUFFIX:
            yield status.st_mtime, status.st_size, path
        elif _is_abandoned(status.st_mtime):
            yield 0.0, status.st_size, path


def _files(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the cache's files: entries, and temporaries that will be some."""
    for folder in _listing(directory):
        if not folder.is_dir(follow_symlinks=False):
            continue
        for file in _listing(Path(folder.path)):
            if not file.name.endswith((_SUFFIX, _TEMPORARY)):
                continue
            try:
                status = file.stat(follow_symlinks=False)
            except OSError:  # another process removed it
                continue
            yield Path(file.path), status


def _is_abandoned(modified: float) -> bool:
    return time.time() - modified > _ABANDONED_SECONDS


def _listing(directory: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as files:
            return list(files)
    except OSError:
        return []

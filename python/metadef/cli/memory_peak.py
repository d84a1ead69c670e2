"""The memory of a process and of those that it started; a page that several share counts once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

#: seconds between two looks
_PERIOD = 0.05


class MemoryPeak:
    """Looks at the memory of this process and its children as long as it is entered.

    Counted are proportional set sizes (Linux): each page by its share of the processes that have
    it, which leaves out part of what strangers have in memory, too, such as torch's code.
    """

    def __init__(self) -> None:
        self._before = self._peak = 0.0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryPeak:
        self._before = self._peak = _mib_of_tree(os.getpid())
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    @property
    def added_mib(self) -> float:
        """The peak so far, above what there was at the start."""
        return self._peak - self._before

    def _watch(self) -> None:
        while not self._done.wait(_PERIOD):
            self._look()

    def _look(self) -> None:
        self._peak = max(self._peak, _mib_of_tree(os.getpid()))


def _mib_of_tree(process: int) -> float:
    return _mib(process) + sum(map(_mib_of_tree, _children(process)))


def _mib(process: int) -> float:
    """Return the proportional set size of a process, 0 for one that has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def _children(process: int) -> Iterator[int]:
    """Yield the processes that the threads of a process started."""
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            yield from map(int, children.read_text().split())
        except OSError:  # the thread ended meanwhile
            continue

"""Runs cases in worker processes: a crash or an endless loop costs one case its verdict."""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from .cases import Case
from .verdict import Verdict

#: seconds for one case; the first of a worker also pays for its imports
LIMIT_SECONDS = 120.0


class _Worker:
    """A process that judges one case after the other, started when it is first needed."""

    def __init__(self, samples: int) -> None:
        self._samples = samples
        self._process: subprocess.Popen[str] | None = None

    def judge(self, case: Case) -> Verdict:
        """Return the verdict of a case: `crash` or `timeout` when the process does not give one."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(dataclasses.asdict(case)) + "\n")
            process.stdin.flush()
        except BrokenPipeError:
            return self._crash()
        if not select.select([process.stdout], [], [], LIMIT_SECONDS)[0]:
            self.end()
            return Verdict("timeout", f"no verdict after {LIMIT_SECONDS:.0f} s")
        answer = process.stdout.readline()
        return Verdict(**json.loads(answer)) if answer else self._crash()

    def end(self) -> None:
        """End the process and those that it started."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _crash(self) -> Verdict:
        assert self._process is not None
        code = self._process.wait()
        self.end()
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return Verdict("crash", how)

    def _start(self) -> subprocess.Popen[str]:
        here = str(Path(__file__).parent.parent)
        paths = [here, os.environ.get("PYTHONPATH", "")]
        return subprocess.Popen(
            [sys.executable, "-m", "op_db.worker", str(self._samples)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={
                **os.environ,
                "OMP_NUM_THREADS": "1",
                "PYTHONPATH": os.pathsep.join(p for p in paths if p),
            },
        )


def run(cases: Iterable[Case], samples: int, jobs: int = 2) -> Iterator[tuple[Case, Verdict]]:
    """Yield the verdict of each case as it comes; `jobs` processes judge at once."""
    workers: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
    every = [_Worker(samples) for _ in range(jobs)]
    for worker in every:
        workers.put(worker)
    stop = threading.Event()

    def judge(case: Case) -> tuple[Case, Verdict] | None:
        if stop.is_set():
            return None
        worker = workers.get()
        try:
            return case, worker.judge(case)
        finally:
            workers.put(worker)

    with ThreadPoolExecutor(jobs) as executor:
        try:
            for future in as_completed([executor.submit(judge, case) for case in cases]):
                answer = future.result()
                if answer is not None:
                    yield answer
        finally:
            stop.set()
            for worker in every:
                worker.end()

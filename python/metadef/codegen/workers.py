"""Worker processes, started when first needed and kept warm: a crash there is an error here."""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from metadef.codegen.protocol import IDLE_EXIT, STAGE_MARK, Message, receive, send

#: a request that takes longer than this many seconds is taken for an endless loop
LIMIT_SECONDS = 600.0


class WorkerCrash(Exception):
    """The process died, or was ended for its time, in the middle of a request."""


class WorkerKilled(WorkerCrash):
    """Somebody else ended the process, such as a system short of memory."""


class _WorkerLeft(Exception):
    """The process ended itself, idle, just before the request."""


def command(program: str) -> list[str]:
    """Return the command that runs the module `program` in a process with `environment()`."""
    return [sys.executable, "-P", "-m", program]


def environment() -> dict[str, str]:
    """Return an environment in which Python finds metadef where this process has it."""
    import metadef

    (package, *_) = metadef.__path__
    paths = [str(Path(package).parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


@dataclass(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    log: IO[bytes]

    @staticmethod
    def start(program: str) -> _Worker:
        """Start the module `program`."""
        log = tempfile.TemporaryFile()  # noqa: SIM115  # as long as the process
        process = subprocess.Popen(
            command(program),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env=environment(),
            start_new_session=True,  # Ctrl-C is for the parent, which then ends its workers
        )
        return _Worker(process, log)

    def ask(self, request: Message, limit_seconds: float) -> Message:
        """Send a request and wait for its answer.

        Raises:
            WorkerCrash: there is none.
            _WorkerLeft: it had gone before.
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        self.log.seek(0)
        self.log.truncate()
        timer = threading.Timer(limit_seconds, self.process.kill)
        timer.daemon = True
        timer.start()
        try:
            send(self.process.stdin, request)
            answer = receive(self.process.stdout)
        except BrokenPipeError:
            answer = None
        finally:
            expired = not timer.is_alive()
            timer.cancel()
        if answer is None:
            if not expired and self.process.wait() == IDLE_EXIT:
                raise _WorkerLeft
            self.process.kill()
            killed = not expired and self.process.wait() == -signal.SIGKILL
            raise (WorkerKilled if killed else WorkerCrash)(
                self._why(limit_seconds if expired else None)
            )
        return answer

    def end(self) -> None:
        """End the process; it is idle or of no use any more."""
        self.process.kill()
        self.process.wait()
        self._close()

    def forget(self) -> None:
        """Close a forked process's copies of the pipes: the worker is its parent's."""
        self._close()
        self.process.returncode = 0  # no child of this process: nothing to wait for

    def _close(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.log):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def _why(self, expired: float | None) -> str:
        """Say how the process ended, in which stage, and its last words."""
        code = self.process.wait()
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").splitlines()
        stages = [line.removeprefix(STAGE_MARK) for line in lines if line.startswith(STAGE_MARK)]
        words = [line for line in lines if line.strip() and not line.startswith(STAGE_MARK)]
        stage = f" in stage '{stages[-1]}'" if stages else ""
        if expired is not None:
            return f"no end after {expired:.0f} s{stage}"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"{how}{stage}" + (f": {words[0]}" if words else "")


class Workers:
    """A pool of processes that run the module `program`; several threads may ask at once."""

    def __init__(
        self, program: str = "metadef.codegen.worker", limit_seconds: float = LIMIT_SECONDS
    ) -> None:
        self._program = program
        self._limit_seconds = limit_seconds
        self._idle: list[_Worker] = []
        self._lock = threading.Lock()
        self._owner = os.getpid()

    def ask(self, request: Message, limit_seconds: float | None = None) -> Message:
        """Have an idle worker, or a new one, answer a request, within the pool's limit if not said.

        Raises:
            WorkerCrash: the worker died of it, or was killed twice.
        """
        killed = False
        while True:
            try:
                with self._lend() as worker:
                    return worker.ask(request, limit_seconds or self._limit_seconds)
            except _WorkerLeft:
                continue
            except WorkerKilled:
                if killed:
                    raise
                killed = True

    def start(self, count: int) -> None:
        """Start workers until `count` are idle: they load MLIR while others work."""
        with self._lock:
            self._leave_parents_workers()
            self._idle = [worker for worker in self._idle if worker.process.poll() is None]
            missing = count - len(self._idle)
            self._idle += [self._new() for _ in range(missing)]

    def end(self) -> None:
        """End the idle workers."""
        with self._lock:
            self._leave_parents_workers()
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    @contextlib.contextmanager
    def _lend(self) -> Iterator[_Worker]:
        with self._lock:
            self._leave_parents_workers()
            worker = self._idle.pop() if self._idle else None
        worker = worker or self._new()
        try:
            yield worker
        except BaseException:
            worker.end()
            raise
        with self._lock:
            self._idle.append(worker)

    def _new(self) -> _Worker:
        return _Worker.start(self._program)

    def _leave_parents_workers(self) -> None:
        """In a forked child, let go of workers that talk to the parent."""
        if self._owner != os.getpid():
            self._owner = os.getpid()
            for worker in self._idle:
                worker.forget()
            self._idle = []


#: the workers of this process
WORKERS = Workers()
atexit.register(WORKERS.end)

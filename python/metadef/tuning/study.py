"""The measured trials of a search, kept in Optuna's storage: what is there is not measured again.

study = open_study(storage, device, compiler, threads)
study.trials("kernel 3fa2..")      # what was tried of one subject
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from metadef.diagnostics import MetadefError

if TYPE_CHECKING:
    import optuna

_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Trial:
    """One choice that was measured beside the default: its time over the default's, or why there is
    none. `predicted` is the cost model's ratio."""

    choice: Mapping[str, Any]
    ratio: float | None
    spread: float = 0.0
    predicted: float | None = None
    failed: str | None = None


@dataclass(eq=False)
class Study:
    """Trials by subject, for one device, compiler and number of threads."""

    _storage: optuna.storages.BaseStorage
    _prefix: str

    def trials(self, subject: str) -> list[Trial]:
        """Return what was measured of a subject, the oldest first."""
        with _quiet():
            kept = self._of(subject).get_trials(deepcopy=False)
        return [_read(t.value, t.user_attrs) for t in kept if t.state.is_finished()]

    def add(self, subject: str, trial: Trial) -> None:
        """Keep a trial."""
        import optuna

        said = {k: v for k, v in vars(trial).items() if k not in ("choice", "ratio")}
        attributes = {"choice": json.dumps(dict(trial.choice), sort_keys=True), **said}
        state = optuna.trial.TrialState
        with _quiet():
            self._of(subject).add_trial(
                optuna.trial.create_trial(
                    state=state.FAIL if trial.ratio is None else state.COMPLETE,
                    value=trial.ratio,
                    user_attrs=attributes,
                )
            )

    def _of(self, subject: str) -> optuna.Study:
        import optuna

        name = f"{self._prefix} {subject}"
        return optuna.create_study(storage=self._storage, study_name=name, load_if_exists=True)


@contextlib.contextmanager
def open_study(storage: str | Path, prefix: str) -> Iterator[Study]:
    """Open the trials in a file, or at a URL as SQLAlchemy writes it, for this process alone.

    A file is held as long as the study is open. A server keeps its own order among processes.

    Raises:
        MetadefError: another process holds the file, or it is no storage of Optuna's.
    """
    import optuna

    text = str(storage)
    file = text.removeprefix(_SQLITE) if text.startswith(_SQLITE) or "://" not in text else None
    with contextlib.ExitStack() as held:
        if file is not None:
            path = Path(file)
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(_hold(path))
            text = f"{_SQLITE}{path}"
        try:
            with _quiet():
                found = optuna.storages.RDBStorage(text)
        except Exception as error:  # SQLAlchemy's, sqlite's and Optuna's have no base in common
            name, advice = text.removeprefix(_SQLITE), "delete it to start again"
            if file is None:
                name = _without_password(text)
                advice = "see that the server runs, and its driver is installed (metadef[cluster])"
            raise MetadefError(
                f"study '{name}': expected trials that Optuna keeps, got "
                f"{type(error).__name__}: {str(error).splitlines()[0]}; "
                f"{advice}, or give another --storage"
            ) from error
        yield Study(found, prefix)


def _without_password(url: str) -> str:
    from sqlalchemy import exc, make_url

    try:
        return make_url(url).render_as_string(hide_password=True)
    except exc.ArgumentError:  # it has no such parts
        return url


@contextlib.contextmanager
def _hold(path: Path) -> Iterator[None]:
    lock = path.with_name(path.name + ".lock")
    with lock.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise MetadefError(
                f"study '{path}': process {_holder(file)} holds it; wait for its end, or give "
                "another --storage"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _holder(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip() or "?"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from telling of each trial: there is a display for that."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)


def _read(value: float | None, attributes: Mapping[str, Any]) -> Trial:
    return Trial(
        choice=json.loads(attributes["choice"]),
        ratio=value,
        spread=attributes.get("spread", 0.0),
        predicted=attributes.get("predicted"),
        failed=attributes.get("failed"),
    )

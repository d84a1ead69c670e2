"""What a person sees: tables on stdout, and a progress bar on stderr while something takes time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

#: columns of output that goes to a file or a pipe
_WIDTH = 160


def stdout() -> Console:
    """Return the console for results; a pipe gets wide lines without colour."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH, highlight=False)


@contextmanager
def progress_bar(
    title: str, *, remaining: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar while the block runs; yield `tell(stage, done, total)`. No terminal, no bar.

    With `remaining` it says how long the rest will take, by the speed so far.
    """
    console = Console(stderr=True)
    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        *([TextColumn("left:"), TimeRemainingColumn()] if remaining else []),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(title, total=None)

        def tell(stage: str, done: int, total: int) -> None:
            bar.update(task, description=f"{title}: {stage}", completed=done, total=total)

        yield tell

"""`metadef cost explain MODEL`: shows what each kernel is predicted to take, and why."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import TYPE_CHECKING

from rich.table import Table

from metadef.cli.console import progress_bar, stdout
from metadef.cli.cost_options import add_cost_options, cost_model
from metadef.cli.models import add_model, load_model
from metadef.cli.usage import count

if TYPE_CHECKING:
    from metadef.predict.explain import Explained

HELP = "show each kernel's predicted time, its bound, and what lost"
DESCRIPTION = (
    "Show for each kernel of a model what a run of it is predicted to take by default, what bounds "
    "it (an element type's arithmetic, a memory level, or the launch), where the answer is from, "
    "and the choices that are predicted to take next longest, each with what differs in it."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_cost_options(parser)
    parser.add_argument(
        "--choices", metavar="N", type=count, default=64, help="choices of each kernel (64)"
    )
    parser.add_argument(
        "--top", metavar="N", type=count, default=3, help="show so many choices that lost (3)"
    )


def run(args: argparse.Namespace) -> int:
    """Predict; print the table."""
    from metadef.frontend.model_kernels import model_kernels
    from metadef.predict.explain import explain

    model = cost_model(args)
    loaded = load_model(args.model)
    kernels = model_kernels(loaded.module, loaded.args, loaded.kwargs, spec=model.spec)
    found = []
    with progress_bar(loaded.name) as tell:
        for n, kernel in enumerate(kernels):
            tell(kernel.source.name, n, len(kernels))
            found.append(explain(model, kernel, args.choices))
    stdout().print(_table(found, args.top))
    return 0


def _table(found: list[Explained], top: int) -> Table:
    total = sum(f.chosen.ns * f.kernel.runs for f in found)
    table = Table(title="predicted by default", caption_justify="left")
    table.add_column("kernel", overflow="fold")
    for title in ("runs", "us a run", "share", "within", "bound", "source"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("beside the best other choices", overflow="fold")
    for f in found:
        p = f.chosen
        table.add_row(
            f.kernel.source.name,
            str(f.kernel.runs),
            f"{p.ns / 1e3:.2f}",
            f"{p.ns * f.kernel.runs / total:.1%}",
            f"{p.uncertainty:.0%}",
            p.bound,
            p.source + "!" * p.noisy,
            "\n".join(f.line(other) for other in islice(f.others, top)),
        )
    table.caption = (
        f"{total / 1e6:.3f} ms in all kernels, each with its data where it left it. Two of three "
        "times are within the factor 1 + `within`; ! rests on measurements that were noisy"
    )
    return table

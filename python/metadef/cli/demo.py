"""`tools/demo`: ResNet-50 and BERT-base, compiled, checked against eager, and timed side by side.

Both are built from the configurations of `transformers` with random weights; nothing is downloaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.table import Table

from metadef.cli.console import progress_bar, stdout
from metadef.cli.models import Model
from metadef.cli.usage import Parser, UsageError, count
from metadef.diagnostics import MetadefError
from metadef.measure.timing import Series, interleave, ratio

if TYPE_CHECKING:
    from metadef.cli.numbers import Difference
    from metadef.frontend.report import Memory, Report


@dataclass(frozen=True)
class Outcome:
    """One model: what compiling did, how far its numbers are from eager's, times of both."""

    model: str
    report: Report
    difference: Difference
    eager: Series
    ours: Series


def resnet50() -> Model:
    """ResNet-50 on one image of 224x224."""
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    model = ResNetForImageClassification(ResNetConfig())
    return Model("ResNet-50", _settled(model), (torch.randn(1, 3, 224, 224),))


def bert_base() -> Model:
    """BERT-base, 12 layers, on one sequence of 128 tokens."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig()
    tokens = torch.randint(config.vocab_size, (1, 128))
    return Model("BERT-base", _settled(BertModel(config)), (tokens,))


def _settled(module: Any) -> Any:
    return module.eval().requires_grad_(False)


MODELS: tuple[Callable[[], Model], ...] = (resnet50, bert_base)


def main(argv: Sequence[str] | None = None) -> int:
    """Show the table; return 0, 1 when a number is wrong or a model fails, or 2 for wrong usage."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before transformers is imported
    parser = Parser(prog="tools/demo", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--threads", metavar="N", type=count, help="threads (default: torch's)")
    parser.add_argument("--rounds", metavar="N", type=count, default=20, help="slices each (20)")
    try:
        args = parser.parse_args(argv)
        return show(MODELS, args.threads, args.rounds)
    except MetadefError as error:
        print(f"tools/demo: error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1


def show(models: Sequence[Callable[[], Model]], threads: int | None, rounds: int) -> int:
    """Try each model, print the table, and return the exit code."""
    import torch

    if threads is not None:
        torch.set_num_threads(threads)
    outcomes = [_try(build, rounds) for build in models]
    console = stdout()
    console.print(_table(outcomes, torch.get_num_threads()))
    wrong = [o for o in outcomes if not o.difference.right]
    for o in wrong:
        d = o.difference
        console.print(
            f"{o.model}: {d.output} is wrong: {d.about}, relative error {d.error:.1e}, "
            f"expected at most {d.tolerance:.0e}"
        )
    return 1 if wrong else 0


def _try(build: Callable[[], Model], rounds: int) -> Outcome:
    import torch

    from metadef.api import compile
    from metadef.cli.numbers import differences, results, worst

    torch.manual_seed(0)
    model = build()
    with torch.no_grad():
        with progress_bar(f"compiling {model.name}") as tell:
            compiled = compile(model.module, model.args, model.kwargs, progress=tell)
        eager = model.eager
        found = worst(differences(*results(model, compiled)))
        with progress_bar(f"measuring {model.name}") as tell:
            series = interleave(
                {
                    "eager": lambda: eager(*model.args, **model.kwargs),
                    "metadef": lambda: compiled(*model.args, **model.kwargs),
                },
                rounds=rounds,
                on_round=lambda done, total: tell("eager and metadef in turn", done, total),
            )
    return Outcome(model.name, compiled.report(), found, series["eager"], series["metadef"])


def _table(outcomes: Sequence[Outcome], threads: int) -> Table:
    table = Table(title=f"metadef and eager, {threads} thread(s)")
    table.add_column("")
    for outcome in outcomes:
        table.add_column(outcome.model, justify="right")
    for title, *cells in _stage_rows(outcomes):
        table.add_row(title, *cells)
    table.add_section()
    for title, cell in _COMPILED:
        table.add_row(title, *(cell(o.report) for o in outcomes))
    table.add_section()
    for title, value in _MEASURED:
        table.add_row(title, *(value(o) for o in outcomes))
    return table


def _stage_rows(outcomes: Sequence[Outcome]) -> Iterator[list[str]]:
    """Yield a row for each stage that leaves a graph: its name, and the nodes of each model."""
    nodes = [{s.name: s.nodes for s in o.report.stages if s.nodes is not None} for o in outcomes]
    for name in dict.fromkeys(name for found in nodes for name in found):
        yield [f"nodes after {name}", *(str(found.get(name, "")) for found in nodes)]


def _bytes(report: Report, size: Callable[[Memory], str | int]) -> str:
    return f"{sum(int(size(memory)) for memory in report.memory) / 2**20:.1f} MiB"


_COMPILED: tuple[tuple[str, Callable[[Report], str]], ...] = (
    ("kernels run in a call", lambda r: str(r.dispatches)),
    ("distinct kernels, with weights' own", lambda r: str(r.kernels)),
    ("ops left to torch", lambda r: str(len(r.fallbacks))),
    ("memory of intermediates, unplanned", lambda r: _bytes(r, lambda m: m.unplanned)),
    ("memory of intermediates, planned", lambda r: _bytes(r, lambda m: m.planned)),
    ("weights", lambda r: _bytes(r, lambda m: m.weights)),
    ("compile time", lambda r: f"{r.compile_seconds:.1f} s"),
    ("kernels from the cache", lambda r: f"{r.kernels_from_cache} of {r.kernels}"),
)

_MEASURED: tuple[tuple[str, Callable[[Outcome], str]], ...] = (
    ("eager, median", lambda o: f"{o.eager.median * 1e3:.2f} ms"),
    ("metadef, median", lambda o: f"{o.ours.median * 1e3:.2f} ms"),
    ("metadef is faster by", lambda o: f"{ratio(o.eager, o.ours):.2f}x"),
    ("max relative error against eager", lambda o: f"{o.difference.error:.1e}"),
)


if __name__ == "__main__":
    sys.exit(main())

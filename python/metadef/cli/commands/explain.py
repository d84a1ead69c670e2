"""`metadef explain`: says what each kernel of a compiled model does, and how long it takes."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table

from metadef.cli.commands.compile import add_compile_options, add_threads, compile_for
from metadef.cli.console import stdout
from metadef.cli.models import add_model, load_model

if TYPE_CHECKING:
    from metadef.frontend.compiled_model import CompiledModel
    from metadef.frontend.kernels import KernelSummary

HELP = "show the kernels: ops, source lines, shapes, bytes, time"
DESCRIPTION = (
    "Compile a model, time each kernel on the example inputs, and show the kernels, the most "
    "costly first: ops and source lines, shapes, bytes in and out, runs in a call, time."
)


@dataclass(frozen=True)
class _Use:
    """A kernel, how often a call runs it, and the ns that these runs take together."""

    kernel: KernelSummary
    runs: int
    ns: float


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_threads(parser)
    add_compile_options(parser)
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--json", action="store_true", help="print the kernels as JSON")
    shown.add_argument("--assembly", metavar="KERNEL", help="print a kernel's machine code instead")


def run(args: argparse.Namespace) -> int:
    """Print the kernels, or the code of one."""
    model = load_model(args.model)
    compiled = compile_for(args, model)
    if args.assembly is not None:
        print(compiled.mlir("assembly", kernel=args.assembly))
        return 0
    uses = _uses(compiled, model.args, model.kwargs)
    if args.json:
        print(json.dumps([_as_dict(use) for use in uses], indent=2))
    else:
        stdout().print(_table(uses))
    return 0


def _uses(
    compiled: CompiledModel, args: tuple[object, ...], kwargs: dict[str, object]
) -> list[_Use]:
    summaries = {kernel.name: kernel for kernel in compiled.kernels}
    profiled = compiled.profile(args, kwargs, against_limits=False).kernels
    return [_Use(summaries[k.name], k.runs, k.ns) for k in profiled if k.name in summaries]


def _table(uses: list[_Use]) -> Table:
    total = sum(use.ns for use in uses)
    table = Table(show_lines=True)
    for title in ("kernel", "ops", "from", "shapes"):
        table.add_column(title, overflow="fold")
    for title in ("bytes", "runs", "us", "share"):
        table.add_column(title, justify="right", no_wrap=True)
    for use in uses:
        kernel = use.kernel
        table.add_row(
            kernel.name,
            " ".join(kernel.ops),
            "\n".join(_short(line) for line in kernel.lines),
            f"{', '.join(kernel.arguments)} -> {', '.join(kernel.results)}",
            str(kernel.work.bytes),
            str(use.runs),
            f"{use.ns / 1e3:.1f}",
            f"{use.ns / total:.1%}" if total else "",
        )
    table.caption = (
        f"{sum(use.runs for use in uses)} runs of {len(uses)} kernels, {total / 1e3:.1f} us; "
        "bytes are those of one run, us of all runs in a call"
    )
    return table


def _short(line: str) -> str:
    """Return `model.py:41` of a longer path."""
    return line.rpartition("/")[2]


def _as_dict(use: _Use) -> dict[str, object]:
    k = use.kernel
    return {
        "kernel": k.name,
        "ops": k.ops,
        "lines": k.lines,
        "arguments": k.arguments,
        "results": k.results,
        "bytes": str(k.work.bytes),
        "runs": use.runs,
        "ns": use.ns,
    }

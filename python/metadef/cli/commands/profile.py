"""`metadef profile`: shows where the time of a call goes, beside what the device can do."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table

from metadef.cli.commands.compile import add_compile_options, compile_for
from metadef.cli.console import progress_bar, stdout
from metadef.cli.devices import NOISY
from metadef.cli.models import add_model, load_model
from metadef.cli.usage import count, counts

if TYPE_CHECKING:
    from metadef.profiling.profile import KernelProfile, Profile

HELP = "show each kernel's time beside the device's limits"
DESCRIPTION = (
    "Compile a model, run it on its example inputs with the clock on in the native program, and "
    "show each kernel's time, flops and bytes against what this device was measured to reach. "
    "Limits are measured once (some seconds) and kept in the cache."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    add_model(parser)
    add_compile_options(parser)
    parser.add_argument(
        "--threads", metavar="N,M", type=counts, help="numbers of threads (default: torch's)"
    )
    parser.add_argument("--rounds", metavar="N", type=count, default=20, help="timed calls (20)")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument(
        "--trace", metavar="FILE", help="write a call as a trace for Perfetto or Chrome"
    )
    parser.add_argument(
        "--roofline", metavar="FILE", help="write the roofline plot and the kernels as HTML"
    )
    parser.add_argument(
        "--asm", metavar="KERNEL", help="print a kernel's machine code, and run nothing"
    )
    parser.add_argument(
        "--measure-again", action="store_true", help="measure the device's limits anew"
    )


def run(args: argparse.Namespace) -> int:
    """Profile with each number of threads; print the tables, write the files."""
    import torch

    from metadef.profiling.roofline_page import roofline_page
    from metadef.profiling.trace import trace

    model = load_model(args.model)
    profiles: list[Profile] = []
    for threads in args.threads or [torch.get_num_threads()]:
        args.threads = threads
        compiled = compile_for(args, model)
        if args.asm is not None:
            print(compiled.mlir("assembly", kernel=args.asm))
            return 0
        with progress_bar(model.name) as tell:
            profiles.append(
                compiled.profile(
                    model.args,
                    model.kwargs,
                    rounds=args.rounds,
                    measure_again=args.measure_again,
                    progress=tell,
                )
            )
    if args.trace is not None:
        Path(args.trace).write_text(json.dumps(trace(profiles, model.name)), encoding="utf-8")
    if args.roofline is not None:
        Path(args.roofline).write_text(roofline_page(profiles, model.name), encoding="utf-8")
    if args.json:
        print(json.dumps({"model": model.name, "profiles": [p.as_dict() for p in profiles]}))
    else:
        for profile in profiles:
            stdout().print(_table(profile))
    return 0


def _table(profile: Profile) -> Table:
    from metadef.profiling.roofline_page import summary

    table = Table(title=f"{profile.threads} thread(s)", caption_justify="left")
    table.add_column("kernel", overflow="fold")
    titles = ["runs", "ms", "share", "GFLOP/s", "GB/s", "of limit", "bound"]
    if profile.threads > 1:
        titles += ["balance", "waiting"]
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("from", overflow="fold")
    for kernel in profile.kernels:
        table.add_row(*_cells(profile, kernel))
    table.caption = summary(profile) + _noise(profile)
    return table


def _cells(profile: Profile, kernel: KernelProfile) -> list[str]:
    cells = [
        kernel.name if kernel.kind == "native" else f"{kernel.name} (torch)",
        str(kernel.runs),
        f"{kernel.ns / 1e6:.3f}",
        f"{kernel.ns / profile.total_ns:.1%}",
        f"{kernel.flops_per_second / 1e9:.1f}" if kernel.flops else "",
        f"{kernel.bytes_per_second / 1e9:.1f}" if kernel.bytes else "",
        f"{kernel.of_limit:.0%}" if kernel.bound else "",
        kernel.bound,
    ]
    if profile.threads > 1:
        waiting = sum(kernel.wait_ns) / len(kernel.wait_ns) / kernel.ns if kernel.ns else 0.0
        cells += [f"{kernel.balance:.0%}", f"{waiting:.0%}"]
    return [*cells, "\n".join(kernel.places)]


def _noise(profile: Profile) -> str:
    """Return a sentence on limits that were measured while the machine did other work, or ''."""
    if profile.limits is None:
        return ""
    figures = [m for m in profile.limits.entries if m.threads == profile.threads]
    noisy = [m for m in figures if (m.spread or 0.0) > NOISY]
    if not noisy:
        return ""
    return (
        f". {len(noisy)} of {len(figures)} limits were measured in noise (rounds spread over "
        f"{NOISY:.0%}): on a quiet machine, --measure-again"
    )

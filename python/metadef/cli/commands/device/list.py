"""`metadef device list`: names the devices that come with metadef."""

from __future__ import annotations

import argparse

from rich.table import Table

from metadef.cli.console import stdout

HELP = "list the shipped devices"
DESCRIPTION = (
    "List the devices that come with metadef, from public data sheets, each with its first source."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """It has no options."""


def run(args: argparse.Namespace) -> int:
    """Print the table."""
    from metadef.device.shipped import shipped, shipped_names

    table = Table("device", "kind", "name", "LLVM CPU")
    for title in ("cores", "threads", "vector bits", "f32 Gop/s", "memory GB/s"):
        table.add_column(title, justify="right")
    table.add_column("source", overflow="fold", ratio=1)
    for name in shipped_names():
        spec = shipped(name)
        flops = spec.theoretical.flops.get("f32")
        bandwidth = spec.theoretical.bandwidth.get("memory")
        table.add_row(
            *(name, spec.kind, spec.name, spec.cpu),
            *(str(n) for n in (spec.cores, spec.threads, spec.vector_bits)),
            *("-" if rate is None else f"{rate / 1e9:,.0f}" for rate in (flops, bandwidth)),
            spec.source.partition(";")[0],
        )
    stdout().print(table)
    return 0

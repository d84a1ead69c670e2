#!/usr/bin/env python3
"""Measures contractions and convolutions of random shapes beside eager, which calls oneDNN or MKL.

    bench/shapes.py --threads 1

The shapes come from a seed: odd sizes, primes, tails, thin and deep ones; strides, dilations,
groups. What is good for the rows of run.py shall be good for them. Records go to
bench/results/shapes.jsonl.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from record import circumstances, keep
from rich.table import Table
from summary import geometric_mean
from torch import nn

from metadef.api import compile
from metadef.cli.console import progress_bar, stdout
from metadef.cli.models import Model
from metadef.cli.numbers import differences, results, worst
from metadef.cli.usage import count, counts
from metadef.diagnostics import MetadefError
from metadef.measure.timing import interleave, ratio

#: multiply-adds of a shape: long enough to time, short enough to repeat
_LEAST, _MOST = 2_000_000, 500_000_000
#: what counts as slow
_SLOW = 0.85

_PRIMES = (3, 7, 13, 17, 31, 61, 101, 127, 251, 257, 509, 769, 1021, 1531, 2053)


@dataclass(frozen=True)
class Shape:
    """A contraction or a convolution: what it is called, its multiply-adds, and how to make it."""

    name: str
    work: int
    build: Callable[[], Model]


def contraction(choose: random.Random) -> Shape:
    """[batch, M, K] x [batch, K, N], or a layer with [N, K] known weights."""
    sizes = {
        "any": lambda: [choose.randint(1, 1500) for _ in range(3)],
        "prime": lambda: [choose.choice(_PRIMES) for _ in range(3)],
        "tail": lambda: [16 * choose.randint(2, 64) + choose.choice((-1, 1, 2)) for _ in range(3)],
        "thin": lambda: _shuffled(choose, choose.randint(1, 8), *_two(choose, 200, 3000)),
        "deep": lambda: [*_two(choose, 4, 100), choose.randint(2000, 20000)],
    }
    kind = choose.choice(list(sizes))
    m, n, k = sizes[kind]()
    batch = choose.choice((1, 1, 1, choose.randint(2, 16)))
    known = batch == 1 and choose.random() < 0.5
    name = f"{kind} {m}x{k}x{n}" + f", batch {batch}" * (batch > 1) + ", known weights" * known
    build = partial(_layer, m, k, n) if known else partial(_product, batch, m, k, n)
    return Shape(name, batch * m * n * k, build)


def _two(choose: random.Random, least: int, most: int) -> list[int]:
    return [choose.randint(least, most) for _ in range(2)]


def _shuffled(choose: random.Random, *values: int) -> list[int]:
    return choose.sample(values, len(values))


def _layer(m: int, k: int, n: int) -> Model:
    return Model("", nn.Linear(k, n, bias=False), (torch.randn(m, k),))


def _product(batch: int, m: int, k: int, n: int) -> Model:
    lead = (batch,) if batch > 1 else ()
    return Model("", torch.matmul, (torch.randn(*lead, m, k), torch.randn(*lead, k, n)))


def convolution(choose: random.Random) -> Shape | None:
    """A 2-D convolution with bias: plain, grouped or depthwise; None if the image is too small."""
    kernel = choose.choice((1, 1, 3, 3, 3, 5, 7))
    kind = choose.choice(("plain", "plain", "grouped", "depthwise"))
    groups, inside, outside = {
        "plain": lambda: (1, choose.randint(1, 400), choose.randint(1, 400)),
        "grouped": lambda: _grouped(choose),
        "depthwise": lambda: (channels := choose.randint(8, 700), channels, channels),
    }[kind]()
    batch, height, width = choose.choice((1, 1, 1, 2, 3)), *_two(choose, 5, 120)
    stride, dilation = choose.choice((1, 1, 1, 2, 3)), choose.choice((1, 1, 1, 1, 2))
    padding = choose.randint(0, kernel // 2)
    reach = dilation * (kernel - 1)
    if min(height, width) + 2 * padding <= reach:
        return None
    layer = partial(
        *(nn.Conv2d, inside, outside, kernel),
        **{"stride": stride, "padding": padding, "dilation": dilation, "groups": groups},
    )
    rows, columns = ((n + 2 * padding - reach - 1) // stride + 1 for n in (height, width))
    work = batch * rows * columns * outside * (inside // groups) * kernel**2
    name = f"{kind} {batch}x{inside}x{height}x{width} to {outside}, {kernel}x{kernel}"
    for what, value, usual in (("stride", stride, 1), ("dilation", dilation, 1)):
        name += f", {what} {value}" * (value != usual)
    name += f", padding {padding}" + f", {groups} groups" * (kind == "grouped")
    return Shape(
        name, work, lambda: Model("", layer(), (torch.randn(batch, inside, height, width),))
    )


def _grouped(choose: random.Random) -> tuple[int, int, int]:
    groups = choose.randint(2, 8)
    return groups, groups * choose.randint(1, 60), groups * choose.randint(1, 60)


def drawn(draw: Callable[[random.Random], Shape | None], number: int, seed: int) -> list[Shape]:
    """Return so many shapes whose work is within the bounds."""
    choose = random.Random(seed)
    found: list[Shape] = []
    while len(found) < number:
        shape = draw(choose)
        if shape is not None and _LEAST <= shape.work <= _MOST:
            found.append(shape)
    return found


def main() -> int:
    """Measure, print the tables, keep the records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--kinds", default="contraction,convolution", help="of shapes (both)")
    add("--number", type=count, default=40, help="shapes of each kind (40)")
    add("--seed", type=int, default=0, help="what the shapes come from (0)")
    add("--threads", type=counts, default=[1, 2], help="numbers of threads (1,2)")
    add("--rounds", type=count, default=9, help="slices of each program (9)")
    add("--slice", type=float, default=0.05, help="seconds of a slice (0.05)")
    add("--no-record", action="store_true", help="keep no record of the measurements")
    args = parser.parse_args()
    draws = {"contraction": contraction, "convolution": convolution}
    if unknown := set(args.kinds.split(",")) - set(draws):
        parser.error(f"--kinds: unknown {', '.join(unknown)}; known are {', '.join(draws)}")
    where = circumstances() | {"seed": args.seed}
    console = stdout()
    torch.set_grad_enabled(False)
    for threads in args.threads:
        torch.set_num_threads(threads)
        for kind in args.kinds.split(","):
            records = []
            shapes = drawn(draws[kind], args.number, args.seed)
            with progress_bar(f"{kind}s, {threads} thread(s)") as tell:
                for done, shape in enumerate(shapes):
                    tell(shape.name, done, len(shapes))
                    about = where | {"kind": kind, "shape": shape.name, "threads": threads}
                    records.append(about | _measure(shape, threads, args))
            if not args.no_record:
                keep("shapes", records)
            console.print(table(f"{kind}s, {threads} thread(s)", records))
    return 0


def _measure(shape: Shape, threads: int, args: argparse.Namespace) -> dict[str, Any]:
    """Compile one shape, compare its numbers with eager's, and time both in turn."""
    torch.manual_seed(args.seed)
    model = shape.build()
    if isinstance(model.module, nn.Module):
        model.module.eval().requires_grad_(False)
    compiled = compile(model.module, model.args, threads=threads, fallback="error")
    found = worst(differences(*results(model, compiled)))
    if not found.right:
        raise MetadefError(f"{shape.name}: wrong numbers, relative error {found.error:.1e}")
    programs = {
        "eager": partial(model.eager, *model.args),
        "metadef": partial(compiled, *model.args),
    }
    series = interleave(programs, rounds=args.rounds, slice_seconds=args.slice)
    return {
        "work": shape.work,
        "eager_ms": series["eager"].median * 1e3,
        "ms": series["metadef"].median * 1e3,
        "ratio": ratio(series["eager"], series["metadef"]),
    }


def table(title: str, records: list[dict[str, Any]]) -> Table:
    """Return the shapes, the slowest beside eager first."""
    ratios = [r["ratio"] for r in records]
    slow = sum(r < _SLOW for r in ratios)
    shown = Table(title=title)
    shown.caption = (
        f"geometric mean {geometric_mean(ratios):.2f}, least {min(ratios):.2f}, "
        f"{slow} of {len(ratios)} under {_SLOW}"
    )
    shown.add_column("shape")
    for heading in ("GFLOP/s", "eager ms", "metadef ms", "over eager"):
        shown.add_column(heading, justify="right")
    for r in sorted(records, key=lambda r: r["ratio"]):
        rate = 2e-6 * r["work"] / r["ms"]
        cells = (f"{rate:.1f}", f"{r['eager_ms']:.3f}", f"{r['ms']:.3f}", f"{r['ratio']:.2f}")
        shown.add_row(r["shape"], *cells)
    return shown


if __name__ == "__main__":
    sys.exit(main())
